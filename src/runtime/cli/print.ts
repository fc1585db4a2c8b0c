/** What the command line says: results and lists on stdout, everything else on stderr. */
import { writeAll } from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";

export function print(text: string): void {
  writeAll(1, utf8(text), "stdout");
}

export function printLine(text: string): void {
  print(text + "\n");
}

export function complain(text: string): void {
  try {
    writeAll(2, utf8(text + "\n"));
  } catch {
    // The exit status says that something was wrong, too.
  }
}
