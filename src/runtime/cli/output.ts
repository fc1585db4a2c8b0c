/** What the command line prints: results and lists on stdout, everything else on stderr. */
import { writeAll } from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { isTerminal } from "../../ffi/terminal.ts";

export { printToStderr } from "../../ffi/warn.ts";

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
