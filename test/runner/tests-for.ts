/**
 * Which tests notice a change of a source file: those that import it or something that does, those of its room that it
 * is further away from, those that read it by a pattern, those that are named as it or its folder is, and those that the
 * list of seeded faults has for it or for who imports it. A test that runs the program imports nothing of it, so where
 * nothing else is known, the faults of its folder count.
 */
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { type Fault, faults } from "../seeded/faults.ts";
import { root, testFiles } from "./test-files.ts";

const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

/** `file` is relative to the root. The nearest come first: those of the file's own faults, then those that import it. */
export function testsFor(file: string): string[] {
  const importers = whoImports(), direct = importers.get(file) ?? [];
  const near = direct.flatMap((one) => importers.get(one) ?? []), room = file.split("/")[1];
  const all = testFiles(), isTest = new Set(all);
  // A resource's plugins show what it does.
  const stems = [file, ...direct.filter((one) => one.startsWith("src/plugins/"))].map(stemOf);
  const found = [
    ...listed((fault) => fault.file === file),
    ...[file, ...direct].filter((one) => isTest.has(one)),
    ...stems.flatMap((stem) => all.filter((one) => isNamedAs(one, stem))),
    ...direct.flatMap((one) => listed((fault) => fault.file === one)),
    ...near.filter((one) => isTest.has(one)),
    ...[...whoReaches(near, importers)].filter((one) => isTest.has(one) && one.startsWith(`test/${room}/`)),
  ];
  const known = found.length > 0 ? found : listed((fault) => dirname(fault.file) === dirname(file));
  return [...new Set([...known, ...all.filter((one) => dirname(one) === folderOfTests(file))])];
}

/** Where a file's tests are, when they are in a folder that is named as its own is. */
function folderOfTests(file: string): string {
  return dirname(file).replace(/^src\//, "test/");
}

/** Who imports one of the files, or who imports that, three more times. */
function whoReaches(files: readonly string[], importers: ReadonlyMap<string, string[]>): Set<string> {
  const found = new Set<string>();
  let level = files;
  for (let depth = 0; depth < 3; depth++) {
    level = level.flatMap((one) => importers.get(one) ?? []).filter((one) => !found.has(one));
    for (const one of level) found.add(one);
  }
  return found;
}

function stemOf(file: string): string {
  return basename(file).split(".")[0]!;
}

function isNamedAs(test: string, stem: string): boolean {
  return new RegExp(`^${stem}(-[a-z-]+)?\\.test\\.ts$`).test(basename(test));
}

function listed(isMeant: (fault: Fault) => boolean): string[] {
  return faults.filter(isMeant).flatMap(({ tests }) => tests);
}

let known: Map<string, string[]> | undefined;

function whoImports(): Map<string, string[]> {
  if (known !== undefined) return known;
  known = new Map();
  for (const one of new Bun.Glob("{src,test}/**/*.ts").scanSync(root)) {
    for (const other of [...importsOf(one), ...readBy(one)]) known.getOrInsertComputed(other, () => []).push(one);
  }
  return known;
}

/** Types are not loaded, so who imports nothing else notices nothing. */
function importsOf(file: string): string[] {
  return transpiler.scanImports(readFileSync(join(root, file), "utf8"))
    .filter(({ path }) => path.startsWith("."))
    .map(({ path }) => relative(root, resolve(root, dirname(file), path)));
}

/** A test that judges sources as texts lists them by a pattern; one that runs a script beside it has its path. */
function readBy(file: string): string[] {
  if (!file.endsWith(".test.ts")) return [];
  const text = readFileSync(join(root, file), "utf8");
  const patterns = text.matchAll(/\bGlob\("(src\/[^"]+)"\)/g);
  const scripts = text.matchAll(/\{import\.meta\.dir\}\/([\w/-]+\.ts)`/g);
  return [
    ...[...patterns].flatMap(([, pattern]) => [...new Bun.Glob(pattern!).scanSync(root)]),
    ...[...scripts].map(([, path]) => join(dirname(file), path!)),
  ];
}
