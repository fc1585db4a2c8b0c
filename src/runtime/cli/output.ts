/** What the command line prints: results and lists on stdout, everything else on stderr. */
import { writeAll } from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { printable } from "../../ffi/printable.ts";
import { isTerminal } from "../../ffi/terminal.ts";

export { printToStderr } from "../../ffi/warn.ts";

let unprinted: string | undefined;

export function print(text: string): void {
  write(printable(text));
}

function write(text: string): void {
  if (unprinted === undefined) writeAll(1, utf8(text), "stdout");
  else unprinted += text;
}

/** What the work prints is written when it has ended, or has failed: nobody who does not read stops it half-way. */
export function printingAfterwards(work: () => number): number {
  unprinted = "";
  let status: number;
  try {
    status = work();
  } catch (error) {
    try {
      printCollected();
    } catch {
      // The work's own error says more.
    }
    throw error;
  }
  try {
    printCollected();
  } catch (error) {
    throw new Error(`everything is done, but cannot be listed: ${(error as Error).message}`, { cause: error });
  }
  return status;
}

function printCollected(): void {
  const text = unprinted ?? "";
  unprinted = undefined;
  write(text);
}

export function printLine(text: string): void {
  print(text + "\n");
}

/** A document that other programs get as it is; on a terminal it ends its line (so does src/native/launch.h). */
export function printDocument(text: string): void {
  write(isTerminal(1) ? printable(text) + "\n" : text);
}
