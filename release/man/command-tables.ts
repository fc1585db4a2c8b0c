/** Tables of docs/commands.md, which manual pages repeat: there each fact is written once. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const page = readFileSync(resolve(import.meta.dir, "../../docs/commands.md"), "utf8");

export interface Section {
  /** What is in the two columns, without the row of titles. */
  rows: (readonly [first: string, second: string])[];
  before: string;
  after: string;
}

/** Links are without their targets, and those in parentheses are left out: a manual page has other neighbours. */
export function sectionOfCommands(heading: string): Section {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))?.slice(heading.length);
  const [, before, table, after] = /^([^|]*)\n\| [^\n]*\n\| -[^\n]*\n((?:\| [^\n]*\n)+)([^]*)$/.exec(text ?? "") ??
    [];
  if (before === undefined) throw new Error(`docs/commands.md has no table of two columns under "${heading}"`);
  const rows = table!.trim().split("\n").map((line) => {
    const [, first, second, ...others] = withoutLinks(line).split("|").map((cell) => cell.trim());
    if (second === undefined || others.join() !== "") {
      throw new Error(`docs/commands.md: "${line}" has not two columns`);
    }
    return [first!, second] as const;
  });
  return { rows, before: withoutLinks(before), after: withoutLinks(after!) };
}

function withoutLinks(text: string): string {
  return text.replaceAll(/ \(\[[^\]]*\]\([^)]*\)\)/g, "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").trim();
}
