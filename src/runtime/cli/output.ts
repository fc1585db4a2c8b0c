/** What the command line prints: results and lists on stdout, everything else on stderr. */
import { writeAll } from "../../ffi/files.ts";
import { libc, utf8 } from "../../ffi/libc.ts";

export function print(text: string): void {
  writeAll(1, utf8(text), "stdout");
}

export function printLine(text: string): void {
  print(text + "\n");
}

/** A document that other programs get as it is; on a terminal it ends its line (so does src/native/launch.h). */
export function printDocument(text: string): void {
  print(isTerminal(1) ? text + "\n" : text);
}

const TCGETS = 0x5401;

/** isatty(3) */
function isTerminal(fd: number): boolean {
  return libc.ioctl(fd, TCGETS, new Uint8Array(64)) === 0;
}

/** Never fails: the exit status also reports errors. */
export function printToStderr(line: string): void {
  try {
    writeAll(2, utf8(line + "\n"));
  } catch {
    // stderr is closed or full.
  }
}
