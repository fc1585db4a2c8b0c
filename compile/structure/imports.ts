/** Rules for imports: only downward, no circles, and nothing that a plugin's verb must not load. */
import { foundations, roomOf, rooms, schemaMayImport } from "./rooms.ts";
import type { Source } from "./sources.ts";

export function importDirections(sources: readonly Source[]): string[] {
  const findings: string[] = [...upwardRules()];
  const parts = new Map([...rooms, ...foundations].map(({ name, mayImport }) => [name, mayImport]));
  for (const { path, imports, loads } of sources) {
    const inside = path.slice("src/".length), room = roomOf(inside, [...parts.keys()]);
    if (room === undefined) {
      findings.push(`${path}: ARCHITECTURE.md does not say what this room may import`);
      continue;
    }
    const allowed = inside.endsWith(".schema.ts") ? schemaMayImport : [room, ...parts.get(room)!];
    for (const imported of imports) {
      const name = nameInRules(imported);
      if (roomOf(name, allowed) === undefined) findings.push(`${path}: must not import ${imported}`);
      if (name.endsWith(".schema.ts") && !inside.endsWith(".schema.ts") && loads.includes(imported)) {
        findings.push(`${path}: may only import types from ${imported}`);
      }
    }
    if (loads.includes("bun:ffi")) findings.push(`${path}: only types from bun:ffi; see src/ffi/native.ts`);
  }
  return findings;
}

const nameInRules = (imported: string) => imported.replace(/^src\//, "");

/** Rules that allow a room to import one that is not below it. */
function upwardRules(): string[] {
  const order = rooms.map(({ name }) => name);
  return rooms.flatMap(({ name, mayImport }, index) =>
    mayImport.filter((used) => {
      const below = roomOf(used, order);
      return below !== undefined && order.indexOf(below) <= index;
    }).map((used) => `ARCHITECTURE.md: ${name} must not be allowed to import ${used} above it`)
  );
}

/** What ARCHITECTURE.md allows and nobody needs: its picture would have an arrow too many. */
export function unusedRules(sources: readonly Source[]): string[] {
  const names = [...rooms, ...foundations].map(({ name }) => name);
  return rooms.flatMap(({ name, mayImport }) => {
    const imported = sources.filter(({ path }) => roomOf(path.slice("src/".length), names) === name)
      .flatMap(({ imports }) => imports.map(nameInRules));
    return mayImport.filter((allowed) => !imported.some((one) => roomOf(one, [allowed]) !== undefined))
      .map((allowed) => `ARCHITECTURE.md: ${name} does not import ${allowed}`);
  });
}

/** Import cycles, including types and lazy loading: a reader would find no place to begin. */
export function circles(sources: readonly Source[]): string[] {
  const imports = new Map(sources.map(({ path, imports }) => [path, imports]));
  const findings: string[] = [], done = new Set<string>();
  const visit = (path: string, way: string[]) => {
    if (way.includes(path)) {
      findings.push(`${[...way.slice(way.indexOf(path)), path].join(" → ")}: import one another in a circle`);
    }
    if (done.has(path) || way.includes(path)) return;
    for (const next of imports.get(path) ?? []) visit(next, [...way, path]);
    done.add(path);
  };
  for (const { path } of sources) visit(path, []);
  return findings;
}

/**
 * A plugin's verb loads only our own sources: everything that main.ts loads, at once or lazily, except the runtime
 * and its command line, which a plugin never loads.
 */
export function hotPath(all: readonly Source[]): string[] {
  const sources = new Map(all.map((source) => [source.path, source]));
  const findings: string[] = [];
  const seen = new Set<string>();
  const visit = (path: string, way: string[]) => {
    if (seen.has(path)) return;
    seen.add(path);
    const source = sources.get(path);
    if (source === undefined) {
      if (path !== "package.json") findings.push(`${[...way, path].join(" → ")}: loaded on the way of a plugin verb`);
      return;
    }
    const later = source.loadsLater.filter((one) => !/^src\/(frontends\/cli|runtime)\//.test(one));
    for (const next of [...source.loads, ...later]) visit(next, [...way, path]);
  };
  if (!sources.has("src/main.ts")) return ["src/main.ts is missing"];
  visit("src/main.ts", []);
  return findings;
}
