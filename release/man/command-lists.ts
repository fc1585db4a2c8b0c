/** Lists of docs/commands.md, which manual pages repeat: there each fact is written once. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const page = readFileSync(resolve(import.meta.dir, "../../docs/commands.md"), "utf8");

export interface Section {
  /** What stands before the colon of each item, and behind it. */
  rows: (readonly [first: string, second: string])[];
  before: string;
  after: string;
}

/** Links are without their targets, and those in parentheses are left out: a manual page has other neighbours. */
export function sectionOfCommands(heading: string): Section {
  const text = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`))?.slice(heading.length);
  const [, before, list, after] = /^([^]*?)\n((?:- .*\n(?: {2}\S.*\n)*)+)([^]*)$/.exec(text ?? "") ?? [];
  if (before === undefined) throw new Error(`docs/commands.md has no list under "${heading}"`);
  const rows = list!.split(/^- /m).slice(1).map((item) => {
    const [, first, second] = /^(.*?): (.*)$/.exec(withoutLinks(item).replace(/\n\s*/g, " ")) ?? [];
    if (second === undefined) throw new Error(`docs/commands.md: "${item}" has no colon`);
    return [first!, second] as const;
  });
  return { rows, before: withoutLinks(before), after: withoutLinks(after!) };
}

function withoutLinks(text: string): string {
  return text.replaceAll(/\s+\(\[[^\]]*\]\([^)]*\)\)/g, "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").trim();
}
