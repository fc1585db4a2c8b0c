/**
 * Which tests notice a change of a source file: those that import it or something that does, those of its room that it
 * is further away from, those that read it by a pattern, those that are named as it or its folder is, and those that the
 * list of seeded faults has for it or for who imports it. A test that runs the program imports nothing of it, so where
 * nothing else is known, the faults of its folder count.
 */
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { roomOf, rooms } from "../../compile/structure/rooms.ts";
import { sources } from "../mutation/faults.ts";
import { root, testFiles } from "./test-files.ts";

const roomNames = rooms.map(({ name }) => name);
const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

/**
 * `file` is relative to the root. The nearest come first: those that the list has for it, those that import it and are
 * named as it is, then the others that import it.
 */
export function testsFor(file: string): string[] {
  const importers = whoImports(), direct = importers.get(file) ?? [];
  const near = direct.flatMap((one) => importers.get(one) ?? []),
    room = roomOf(file.replace(/^src\//, ""), roomNames);
  const all = testFiles(), isTest = new Set(all);
  const named = (one: string) => all.filter((test) => isNamedAs(test, stemOf(one)));
  const ofTheme = (one: string) => all.filter((test) => isOfTheme(test, one));
  const own = listed((one) => one === file);
  const found = [
    ...own,
    ...[file, ...direct].filter((one) => isTest.has(one)),
    ...[file, ...direct.filter((one) => one.startsWith("src/plugins/"))].flatMap(named),
    ...direct.flatMap((one) => listed((other) => other === one)),
    ...near.filter((one) => isTest.has(one)),
    ...[...whoReaches(near, importers)].filter((one) => isTest.has(one) && one.startsWith(`test/${room}/`)),
  ];
  return [
    ...new Set([
      ...own,
      ...direct.filter((one) => isNamedAs(one, stemOf(file))),
      ...ofTheme(file),
      ...found.length > 0 ? found : listed((one) => dirname(one) === dirname(file)),
      ...whatIsMadeOf(file).flatMap((one) => [...named(one), ...ofTheme(one)]),
      ...all.filter((one) => dirname(one) === folderOfTests(file)),
    ]),
  ];
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

/** The resources and plugins that are made of the file, the nearest first. A table knows all of them. */
function whatIsMadeOf(file: string): string[] {
  const seen = new Set([file]);
  for (const one of seen) {
    if (!/^src\/(resources|plugins\/shared|interop\/(iptables|firewalld))\//.test(one)) continue;
    for (const above of whoImports().get(one) ?? []) if (basename(above) !== "table.ts") seen.add(above);
  }
  return [...seen].filter((one) => /^src\/(resources|plugins|interop\/(iptables|firewalld))\//.test(one));
}

function stemOf(file: string): string {
  return basename(file).split(".")[0]!;
}

function isNamedAs(test: string, stem: string): boolean {
  return new RegExp(`^${stem}(-[a-z-]+)?\\.test\\.ts$`).test(basename(test));
}

/** links.test.ts is of several themes. */
function isOfTheme(test: string, source: string): boolean {
  const [, folder] = /^src\/(resources\/[\w-]+|interop\/(?:iptables|firewalld))\//.exec(source) ?? [];
  if (/^resources\/(link|address|routing|traffic|kernel)$/.test(folder ?? "") && basename(test) === "links.test.ts") {
    return true;
  }
  return dirname(test) === `test/${folder}`;
}

function listed(isMeant: (file: string) => boolean): string[] {
  return sources.filter(({ file }) => isMeant(file)).flatMap(({ tests }) => tests);
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
