/**
 * Checks that the tree has the structure in ARCHITECTURE.md: `npm run check -- structure`. The rules are in structure/.
 *
 *     bun compile/tidy.ts              prints one finding on each line
 *     bun compile/tidy.ts --graph      prints which folder imports which
 *     bun compile/tidy.ts --picture    prints the rooms, for ARCHITECTURE.md
 */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";
import { anyTypes, calls, lazyLoading } from "./structure/code.ts";
import { machineTexts, namesAndLengths, testHeads } from "./structure/files.ts";
import { circles, hotPath, importDirections } from "./structure/imports.ts";
import { picture } from "./structure/rooms.ts";
import { filesBelow, readSource } from "./structure/sources.ts";

const ours = resolve(import.meta.dir, "..");

function pluginTable(root: string, table: readonly string[]): string[] {
  const folders = ["main", "ipam", "meta"].flatMap((kind) => filesBelow(root, `src/plugins/${kind}`)).filter((path) =>
    basename(dirname(path)) === basename(path, ".ts")
  )
    .map((path) => basename(path, ".ts")).sort();
  const findings: string[] = [];
  if (table.join() !== table.toSorted().join()) findings.push("src/plugins/table.ts: is not sorted");
  for (const name of folders.filter((name) => !table.includes(name))) {
    findings.push(`src/plugins/table.ts: lacks ${name}`);
  }
  for (const name of table.filter((name) => !folders.includes(name))) {
    findings.push(`src/plugins/table.ts: names ${name}, which has no folder`);
  }
  return findings;
}

/** ARCHITECTURE.md shows the rooms as they are. */
function architecture(root: string): string[] {
  const page = join(root, "ARCHITECTURE.md");
  if (!existsSync(page) || readFileSync(page, "utf8").includes(picture())) return [];
  return ["ARCHITECTURE.md: does not show the rooms as `bun compile/tidy.ts --picture` prints them"];
}

/** The findings for the tree at `root`, whose table of plugins has these names. */
export function findings(root: string, table: readonly string[]): string[] {
  const sources = filesBelow(root, "src").map((path) => readSource(root, path));
  const everywhere = ["src", "compile", "bench", "demo", "test"].flatMap((folder) => filesBelow(root, folder));
  return [
    ...importDirections(sources),
    ...circles(sources),
    ...hotPath(sources),
    ...lazyLoading(sources),
    ...anyTypes(sources),
    ...calls(sources),
    ...pluginTable(root, table),
    ...architecture(root),
    ...namesAndLengths(root, everywhere),
    ...testHeads(root, everywhere),
    ...machineTexts(root),
  ];
}

function printGraph() {
  const folderOf = (path: string) =>
    path.startsWith("src/") ? dirname(path).slice("src/".length) || basename(path) : path;
  const edges = new Map<string, Set<string>>();
  for (const source of filesBelow(ours, "src").map((path) => readSource(ours, path))) {
    const from = folderOf(source.path);
    const to = edges.getOrInsertComputed(from, () => new Set());
    for (const imported of source.imports) if (folderOf(imported) !== from) to.add(folderOf(imported));
  }
  for (const [from, to] of [...edges].sort()) console.log(`${from} → ${[...to].sort().join(", ") || "nothing"}`);
}

if (import.meta.main) {
  if (process.argv[2] === "--graph") {
    printGraph();
  } else if (process.argv[2] === "--picture") {
    console.log(picture());
  } else {
    const found = findings(ours, pluginNames);
    for (const finding of found) console.log(finding);
    if (found.length > 0) process.exit(1);
  }
}
