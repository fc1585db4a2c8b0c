/** What the command line prints: results and lists on stdout, everything else on stderr. */
import { EPIPE, isErrno } from "../ffi/errno.ts";
import { writeAll } from "../ffi/files.ts";
import { awaitReady, interruptionDescriptor } from "./interruption.ts";
import { utf8 } from "../ffi/libc.ts";
import { POLLOUT } from "../ffi/poll.ts";
import { isTerminal, printable } from "../ffi/terminal.ts";

export { printToStderr } from "../ffi/terminal.ts";

let unprinted: string | undefined;

export function print(text: string): void {
  write(printable(text));
}

function write(text: string): void {
  if (unprinted === undefined) writeInterruptibly(utf8(text));
  else unprinted += text;
}

/** POLLOUT promises room for as many bytes (PIPE_BUF). */
const PIPE_BYTES = 4096;

/** stdout may be a pipe that nobody reads. */
function writeInterruptibly(bytes: Uint8Array): void {
  if (interruptionDescriptor() < 0) return writeAll(1, bytes, "stdout");
  for (let rest = bytes; rest.length > 0; rest = rest.subarray(PIPE_BYTES)) {
    awaitReady(1, POLLOUT);
    writeAll(1, rest.subarray(0, PIPE_BYTES), "stdout");
  }
}

/** What the work prints is written when it has ended, or has failed: nobody who does not read stops it half-way. */
export function printingAfterwards<Status extends number | Promise<number>>(work: () => Status): Status {
  unprinted = "";
  let status: Status;
  try {
    status = work();
  } catch (error) {
    throw printedBefore(error);
  }
  if (typeof status !== "number") {
    return status.then(printedAfter, (error) => Promise.reject(printedBefore(error))) as Status;
  }
  return printedAfter(status);
}

function printedBefore(error: unknown): unknown {
  try {
    printCollected();
  } catch {
    // The work's own error says more.
  }
  return error;
}

function printedAfter<Status>(status: Status): Status {
  try {
    printCollected();
  } catch (error) {
    if (hasReaderEnough(error)) return status;
    throw new Error(`everything is done, but cannot be listed: ${(error as Error).message}`, { cause: error });
  }
  return status;
}

/** As `| head` has: that is no failure to tell of. */
export function hasReaderEnough(error: unknown): boolean {
  return isErrno(error, EPIPE) && error.subject === "stdout";
}

function printCollected(): void {
  const text = unprinted ?? "";
  unprinted = undefined;
  write(text);
}

export function printLine(text: string): void {
  print(text + "\n");
}

/** What is no text, and never for a terminal. */
export function printBytes(bytes: Uint8Array): void {
  writeInterruptibly(bytes);
}

/** For `--json`: no number loses digits. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, (_, each: unknown) => typeof each === "bigint" ? rawJson(String(each)) : each, 2));
}

/** TypeScript does not know it yet. */
const rawJson = (text: string) => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);

/** A document that other programs get as it is; on a terminal it ends its line (so does src/native/launch.h). */
export function printDocument(text: string): void {
  write(isTerminal(1) ? printable(text) + "\n" : text);
}
