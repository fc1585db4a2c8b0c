/** Whether a person reads or types, and texts for one: control characters in names of others would be obeyed. */
import { writeAll } from "./files.ts";
import { libc, utf8 } from "./libc.ts";

const TCGETS = 0x5401;

/** isatty(3) */
export function isTerminal(fd: number): boolean {
  return libc.ioctl(fd, TCGETS, new Uint8Array(64)) === 0;
}

// deno-lint-ignore no-control-regex
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g, TAB_OR_NEWLINE = /[\t\n]/g;

/** Control characters, besides tab and newline, as JSON writes them: so a JSON document says the same as before. */
export function printable(text: string): string {
  return text.replace(CONTROL, asJson);
}

/** For a part of a line, where tab and newline do not belong either. */
export function printableWord(text: string): string {
  return printable(text).replace(TAB_OR_NEWLINE, asJson);
}

function asJson(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Never fails: a closed or full stderr must not stop the clean-up that it reports on. */
export function printToStderr(line: string): void {
  try {
    writeAll(2, utf8(`${printable(line)}\n`));
  } catch {
    // The exit status reports errors, too.
  }
}
