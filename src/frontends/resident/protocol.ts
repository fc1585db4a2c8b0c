/**
 * The protocol of launcher and resident, over SOCK_SEQPACKET. src/native/launch.h is the other side.
 *
 *     launcher → resident   request, with stdin as a descriptor
 *     resident → launcher   PROVE, before Linux 6.5: the resident learns who sends, not who has connected
 *     launcher → resident   PROOF, whose bytes mean nothing
 *     resident → launcher   READY: the call has begun; or DECLINED
 *     resident → launcher   DONE, with the exit status and what was written; or DECLINED, when nothing was changed
 *
 * A launcher that does not wait for READY any longer shuts its end for reading. Then READY cannot be sent, and the call
 * is not begun.
 */
import { fromUtf8 } from "../../ffi/libc.ts";
import { BUILD_BYTES } from "../../engine/build.ts";

export const PROTOCOL = 0x31424350;
export const READY = 1, DECLINED = 2, DONE = 3, DONE_IN_FILES = 4, PROVE = 5;
/** The kernel's limit for a message is 208 KiB. */
export const MESSAGE_BYTES = 192 * 1024;
const HEAD_BYTES = 12 + BUILD_BYTES;
const ANSWER_BYTES = 16;

export interface Request {
  build: Uint8Array;
  workingDirectory: string;
  argv: readonly string[];
  environment: Uint8Array;
}

/** The name that the program was called by. */
export function nameOf({ argv }: Pick<Request, "argv">): string {
  return argv[0]!.slice(argv[0]!.lastIndexOf("/") + 1);
}

/** Returns undefined when the message is too short, of another protocol, or has other counts than it says. */
export function readRequest(message: Uint8Array): Request | undefined {
  if (message.length < HEAD_BYTES) return undefined;
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const [protocol, argumentCount, variableCount] = [0, 4, 8].map((at) => view.getUint32(at, true));
  if (protocol !== PROTOCOL || argumentCount === 0) return undefined;
  const texts = fromUtf8(message.subarray(HEAD_BYTES)).split("\0"), beforeVariables = 1 + argumentCount!;
  // Behind the last NUL is nothing.
  if (texts.length !== beforeVariables + variableCount! + 1 || texts.at(-1) !== "") return undefined;
  return {
    build: message.slice(12, HEAD_BYTES),
    workingDirectory: texts[0]!,
    argv: texts.slice(1, beforeVariables),
    environment: message.slice(behindTexts(message, beforeVariables)),
  };
}

/** The place behind so many texts. */
function behindTexts(message: Uint8Array, count: number): number {
  let at = HEAD_BYTES;
  for (let text = 0; text < count; text++) at = message.indexOf(0, at) + 1;
  return at;
}

/** A message without outputs, or with DONE_IN_FILES, with which these come as files. */
export function plainMessage(answer: number, status = 0): Uint8Array {
  return encode(answer, status, 0, 0, 0);
}

/** A message with both outputs; undefined when they are too long for one. */
export function doneMessage(status: number, stdout: Uint8Array, stderr: Uint8Array): Uint8Array | undefined {
  const size = stdout.length + stderr.length;
  if (ANSWER_BYTES + size > MESSAGE_BYTES) return undefined;
  const message = encode(DONE, status, stdout.length, stderr.length, size);
  message.set(stdout, ANSWER_BYTES);
  message.set(stderr, ANSWER_BYTES + stdout.length);
  return message;
}

function encode(
  answer: number,
  status: number,
  stdoutBytes: number,
  stderrBytes: number,
  more: number,
): Uint8Array {
  const message = new Uint8Array(ANSWER_BYTES + more), view = new DataView(message.buffer);
  [answer, status, stdoutBytes, stderrBytes].forEach((value, index) => view.setUint32(index * 4, value, true));
  return message;
}
