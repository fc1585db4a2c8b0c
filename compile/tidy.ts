/**
 * Checks that the tree has the structure in ARCHITECTURE.md: `npm run check -- structure`. The rules are in structure/.
 */
import { basename, dirname } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";
import { anyTypes, calls, lazyLoading } from "./structure/code.ts";
import { comments } from "./structure/comments.ts";
import { machineTexts, namesAndLengths, testHeads } from "./structure/files.ts";
import { folderCircles } from "./structure/folders.ts";
import { circles, hotPath, importDirections, unusedRules } from "./structure/imports.ts";
import { homonyms } from "./structure/names.ts";
import { openedFiles } from "./structure/opened-files.ts";
import { filesBelow, readSource } from "./structure/sources.ts";
import { waits } from "./structure/waits.ts";
import { defineTool, root as ours, runTool } from "./tool.ts";

function pluginTable(root: string, table: readonly string[]): string[] {
  const files = ["main", "ipam", "meta"].flatMap((kind) => filesBelow(root, `src/plugins/${kind}`));
  const isMain = (path: string) => basename(path, ".ts") === basename(dirname(path));
  const folders = files.filter(isMain).map((path) => basename(path, ".ts"));
  return [
    ...table.join() === table.toSorted().join() ? [] : ["is not sorted"],
    ...folders.filter((name) => !table.includes(name)).sort().map((name) => `lacks ${name}`),
    ...table.filter((name) => !folders.includes(name)).map((name) => `names ${name}, which has no folder`),
  ].map((finding) => `src/plugins/table.ts: ${finding}`);
}

/** The findings for the tree at `root`, whose table of plugins has these names. */
export function findings(root: string, table: readonly string[]): string[] {
  const sources = filesBelow(root, "src").map((path) => readSource(root, path));
  const folders = ["src", "compile", "bench", "demo", "release", "test"];
  const everywhere = folders.flatMap((folder) => filesBelow(root, folder));
  const commented = folders.flatMap((folder) => filesBelow(root, folder, /\.(?:ts|mts|mjs|c|h)$/));
  return [
    ...importDirections(sources),
    ...circles(sources),
    ...folderCircles(sources),
    ...homonyms(sources),
    ...hotPath(sources),
    ...lazyLoading(sources),
    ...anyTypes(sources),
    ...calls(sources),
    ...openedFiles(sources),
    ...waits(root, sources),
    ...pluginTable(root, table),
    ...namesAndLengths(root, everywhere),
    ...testHeads(root, everywhere),
    ...comments(root, commented),
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

const tool = defineTool({
  name: "structure",
  call: "npx bun compile/tidy.ts",
  about: "Checks that the tree has the structure in ARCHITECTURE.md: npm run check -- structure.",
  options: { graph: { type: "boolean", about: "prints which folder imports which, and checks nothing" } },
  needs: "packages",
  begin: ({ values }) => () => {
    if (values.graph) return printGraph();
    const sources = filesBelow(ours, "src").map((path) => readSource(ours, path));
    const found = [...findings(ours, pluginNames), ...unusedRules(sources)];
    for (const finding of found) console.log(finding);
    return found.length > 0 ? 1 : 0;
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
