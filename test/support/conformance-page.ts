/** The tables of docs/conformance.md. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const page = readFileSync(resolve(import.meta.dir, "../../docs/conformance.md"), "utf8");

/** The cells of the rows below a heading. */
export function rowsBelow(heading: string): string[][] {
  const start = page.indexOf(`\n## ${heading}\n`);
  if (start < 0) throw new Error(`docs/conformance.md has no heading ${heading}`);
  const section = page.slice(start + 1).split("\n## ")[0]!;
  return [...section.matchAll(/^\| (?!-)(.*) \|$/gm)].map(([, row]) => row!.split("|").map((cell) => cell.trim()))
    .filter(([first]) => first!.startsWith("`"));
}

const codes = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** What Debian's build of a plugin does not meet, in the order in which it is asked. */
export function knownFailures(plugin: string): string[] {
  return rowsBelow("What Debian's Go plugins do not meet")
    .filter(([, plugins]) => plugins === "every plugin" || codes(plugins!).includes(plugin))
    .map(([demand]) => codes(demand!)[0]!);
}
