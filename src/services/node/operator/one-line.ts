/** A store has what anybody has written: for people, it is one line, and not longer than somebody reads. */
import { printableWord } from "../../../ffi/terminal.ts";

const LONGEST = 300;

export function oneLine(text: string): string {
  const line = printableWord(text);
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
