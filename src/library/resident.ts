/**
 * Handing an operation to a resident, by the rules of the launcher (native/launch.h): it must be of our user and of the
 * build that this package was made with, and whatever does not go as expected means that the operation runs here.
 */
import { EAGAIN, EINTR, ENOMEM } from "../ffi/errno.ts";
import { closeFile, exists, identify, O_RDONLY, openFile, readAll } from "../ffi/files.ts";
import { bind, fromUtf8, lastErrno, utf8 } from "../ffi/libc.ts";
import { sealedFile } from "../ffi/memory-file.ts";
import { receiveWithDescriptors, sendMessage } from "../ffi/message.ts";
import { poll, POLLIN } from "../ffi/poll.ts";
import {
  DONE,
  DONE_IN_FILES,
  MESSAGE_BYTES,
  plainAnswer,
  PROVE,
  readAnswer,
  READY,
  requestMessage,
} from "../resident/protocol.ts";
import { connectToOwn, SOCKET_PATH } from "../resident/socket.ts";
import { HANDED_OVER } from "../runtime/cli/command.ts";
import { programBuild } from "./program.ts";

/** As in native/launch.h. */
const PATIENCE_MS = 1000;
const SHUT_RD = 0;

export interface Served {
  answer: string;
  warnings: string[];
}

/** Undefined when the operation is to run here: nobody serves it, or whoever began it died. */
export function throughResident(name: string, request: string, environment: Uint8Array): Served | undefined {
  const message = messageFor(name, environment), resident = message && connectToOwn();
  if (resident === undefined) return undefined;
  try {
    return isSent(resident, message!, request) ? converse(resident) : undefined;
  } finally {
    closeFile(resident);
  }
}

/** Undefined where no resident would take it. */
function messageFor(name: string, environment: Uint8Array): Uint8Array | undefined {
  const build = programBuild();
  try {
    if (build === undefined || process.env["PATCHBAY_RESIDENT"] === "off") return undefined;
    if (!exists(SOCKET_PATH) || !isWhereProcessIs()) return undefined;
    const argv = ["patchbay", HANDED_OVER, name];
    return requestMessage({ build, workingDirectory: process.cwd(), argv, environment });
  } catch {
    // The working directory is gone, for example.
    return undefined;
  }
}

/** The resident looks at the process. A thread of it may be elsewhere. */
function isWhereProcessIs(): boolean {
  return ["net", "mnt"].every((kind) =>
    identify(`/proc/self/ns/${kind}`).id === identify(`/proc/thread-self/ns/${kind}`).id
  );
}

function isSent(resident: number, message: Uint8Array, request: string): boolean {
  const stdin = sealedFile("operation", utf8(request));
  if (stdin === undefined) return false;
  let fromStart: number | undefined;
  try {
    // The descriptor that was written stands at the end.
    fromStart = openFile(`/proc/thread-self/fd/${stdin}`, O_RDONLY);
    return sendMessage(resident, message, [fromStart]) === message.length;
  } catch {
    return false;
  } finally {
    closeFile(stdin);
    if (fromStart !== undefined) closeFile(fromStart);
  }
}

function converse(resident: number): Served | undefined {
  let first = receive(resident, PATIENCE_MS, 0);
  if (first?.answer === PROVE) {
    sendMessage(resident, plainAnswer(PROVE));
    first = receive(resident, PATIENCE_MS, 0);
  }
  if (first?.answer !== READY) {
    if (first === undefined && hasBegun(resident)) awaitEnd(resident);
    return undefined;
  }
  const last = receive(resident, Infinity, 2);
  return last === undefined ? undefined : servedBy(last);
}

interface Received extends NonNullable<ReturnType<typeof readAnswer>> {
  descriptors: number[];
}

/** Undefined when the resident is gone, or says nothing in time. */
function receive(resident: number, patienceMs: number, mostDescriptors: number): Received | undefined {
  const bytes = new Uint8Array(MESSAGE_BYTES);
  for (;;) {
    if (!isReadable(resident, patienceMs)) return undefined;
    const { length, descriptors } = receiveWithDescriptors(resident, bytes, mostDescriptors);
    if (length < 0 && [EINTR, EAGAIN, ENOMEM].includes(lastErrno())) continue;
    if (length <= 0) return undefined;
    const answer = readAnswer(bytes.subarray(0, length));
    if (answer !== undefined) return { ...answer, descriptors };
    for (const fd of descriptors) closeFile(fd);
    return undefined;
  }
}

/** With infinite patience, a failure of the look is no end: what was begun there goes on. */
function isReadable(fd: number, patienceMs: number): boolean {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const left = deadline - performance.now();
    try {
      if (poll([{ fd, events: POLLIN }], patienceMs === Infinity ? -1 : Math.max(0, left)).has(fd)) return true;
    } catch {
      // Out of memory, for example.
    }
    if (left <= 0) return false;
  }
}

/** From here on the resident cannot say READY any more, so it does not begin. Answers whether it had begun before. */
function hasBegun(resident: number): boolean {
  bind({ shutdown: { args: ["i32", "i32"], returns: "i32" } }).shutdown(resident, SHUT_RD);
  return receive(resident, 0, 0)?.answer === READY;
}

/** Its answer cannot arrive any more. It closes when it has ended. */
function awaitEnd(resident: number): void {
  for (;;) {
    try {
      if (poll([{ fd: resident, events: 0 }], -1).has(resident)) return;
    } catch {
      // As above.
    }
  }
}

function servedBy({ answer, stdout, stderr, descriptors }: Received): Served | undefined {
  try {
    if (answer !== DONE && answer !== DONE_IN_FILES) return undefined;
    const [out, err] = answer === DONE ? [stdout, stderr] : descriptors.map(contentOf);
    if (out === undefined || err === undefined || out.length === 0) return undefined;
    const lines = fromUtf8(err).split("\n").filter((line) => line !== "");
    return { answer: fromUtf8(out), warnings: lines.map((line) => line.replace(/^patchbay: /, "")) };
  } catch {
    return undefined;
  } finally {
    for (const fd of descriptors) closeFile(fd);
  }
}

function contentOf(file: number): Uint8Array {
  const fd = openFile(`/proc/thread-self/fd/${file}`, O_RDONLY);
  try {
    return readAll(fd);
  } finally {
    closeFile(fd);
  }
}
