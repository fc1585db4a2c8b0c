/** The plugin's side: asks the service, and waits for its answer. */
import { errorText } from "../../cni/error.ts";
import { beforeWaitingFor } from "../../process/patience.ts";
import {
  EACCES,
  EAGAIN,
  ECONNREFUSED,
  ECONNRESET,
  ENOENT,
  EPIPE,
  errnoText,
  isErrno,
  SyscallError,
} from "../../ffi/errno.ts";
import { closeFile } from "../../ffi/files.ts";
import { interruptionDescriptor, throwIfInterrupted } from "../../process/interruption.ts";
import { fromUtf8, lastErrno, libc, utf8 } from "../../ffi/libc.ts";
import { sendMessage } from "../../ffi/socket/message.ts";
import { patienceLeftMs, waitingFor } from "../../process/patience.ts";
import { peerOf } from "../../ffi/socket/peer.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import { connectTo } from "../../ffi/socket/unix.ts";
import { type Answer, LONGEST_LINE, PROTOCOL_VERSION, readAnswer, type ServiceRequest } from "./service-protocol.ts";

/** Nobody listens there. */
export class NoService extends Error {}

/** The service has said no, or something else answers there. `hint` says what to do. */
export class Failed extends Error {
  constructor(text: string, readonly hint = "") {
    super(text);
  }
}

const START_IT = 'start "patchbay dhcp"';

/** The service has ended meanwhile, or another program listens there. */
export class NoAnswer extends Failed {}

type Reply = Exclude<Answer, { failure: string }>;

/** Throws NoService or Failed. `patienceMs` is for all that a verb asks this service. `netns` is an open descriptor of the container's namespace. */
export function ask(socketPath: string, request: ServiceRequest, patienceMs: number, netns?: number): Reply {
  beforeWaitingFor("DHCP");
  return waitingFor(socketPath, () => converse(socketPath, request, patienceLeftMs(socketPath, patienceMs), netns));
}

function converse(socketPath: string, request: ServiceRequest, patienceMs: number, netns?: number): Reply {
  if (patienceMs === 0) throw silent(socketPath);
  const deadline = performance.now() + patienceMs, fd = connect(socketPath, patienceMs);
  try {
    requireTrusted(fd, socketPath);
    const line = utf8(`${JSON.stringify({ version: PROTOCOL_VERSION, ...request })}\n`);
    if (line.length > LONGEST_LINE) throw new Failed(`the request is longer than ${LONGEST_LINE} bytes`);
    const sent = sendMessage(fd, line, netns === undefined ? [] : [netns]);
    // A service that refuses us has said so, and does not wait for what we want.
    const isRefused = sent < 0 && [EPIPE, ECONNRESET].includes(lastErrno());
    if (sent !== line.length && !isRefused) throw new Failed(`${socketPath} does not take the request`);
    return replyIn(receiveLine(fd, socketPath, deadline, request.do === "acquire"), socketPath);
  } finally {
    closeFile(fd);
  }
}

/** To listen and to accept takes it a moment. */
const CONNECT_MS = 25_000;

function connect(path: string, patienceMs: number): number {
  try {
    return connectTo(path, Math.min(patienceMs, CONNECT_MS));
  } catch (error) {
    if (!isErrno(error, ENOENT, ECONNREFUSED, EACCES)) throw error;
    // The reference plugin's words.
    const text = `error dialing DHCP daemon: dial unix ${path}: connect: ${errnoText(error.errno)}`;
    if (error.errno === EACCES) throw new Failed(text, "the service serves root of its own user namespace");
    throw new NoService(text, { cause: error });
  }
}

/** The kernel's name in a user namespace for everybody of other ones (overflowuid), and the user nobody. */
const NOBODY = 65534;

/** The listener gets the container's namespace, and says what address the container has. */
function requireTrusted(fd: number, path: string): void {
  const { pid, uid } = peerOf(fd) ?? { pid: 0, uid: -1 };
  if (uid === 0 || uid === process.geteuid!()) return;
  const who = `process ${pid} of user ${uid} listens on ${path}, and only root or this user may`;
  if (uid !== NOBODY) throw new NoAnswer(who, `end it, and ${START_IT}`);
  throw new NoAnswer(
    `${who}; the DHCP service serves its own user namespace`,
    "call the plugin where the service was started, or start a service of its own here",
  );
}

function silent(path: string): Failed {
  return new Failed(`the DHCP service at ${path} does not answer`, "look at its log");
}

function receiveLine(fd: number, path: string, deadline: number, isInterruptible: boolean): string {
  const part = new Uint8Array(LONGEST_LINE);
  for (let text = "";;) {
    const waitMs = deadline - performance.now();
    if (waitMs <= 0) throw silent(path);
    const signals = isInterruptible ? interruptionDescriptor() : -1;
    const ready = poll([fd, signals].map((one) => ({ fd: one, events: POLLIN })), Math.ceil(waitMs));
    if (ready.has(signals)) throwIfInterrupted();
    if (!ready.has(fd)) continue;
    const length = Number(libc.recvfrom(fd, part, part.length, 0, null, null));
    // The service was killed before it had read all.
    if (length < 0 && lastErrno() === ECONNRESET) return "";
    if (length < 0 && lastErrno() !== EAGAIN) throw new SyscallError("recvfrom", lastErrno(), path);
    if (length > 0) text += fromUtf8(part.subarray(0, length));
    if (text.endsWith("\n") || length === 0) return text;
  }
}

function replyIn(text: string, path: string): Reply {
  // HTTP/2, as netavark's proxy speaks it, begins with the length of a frame.
  if (text.startsWith("HTTP/") || text.startsWith("\0")) {
    throw new NoAnswer(
      `a DHCP daemon of another make listens on ${path}`,
      `stop it, and ${START_IT} instead`,
    );
  }
  if (text === "") throw new NoAnswer(`the DHCP service at ${path} ended before it answered`, "look at its log");
  const answer = answerIn(text, path);
  if (answer.version !== PROTOCOL_VERSION) {
    throw new Failed(`the DHCP service at ${path} is of another version`, "restart it");
  }
  if ("failure" in answer) throw new Failed(answer.failure, answer.hint);
  return answer;
}

function answerIn(text: string, path: string): Answer {
  try {
    return readAnswer(text);
  } catch (error) {
    throw new NoAnswer(
      `what listens on ${path} is no DHCP service of ours: ${errorText(error)}`,
      `end it, and ${START_IT}`,
    );
  }
}
