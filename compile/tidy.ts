/**
 * Whether the tree has the shape that ARCHITECTURE.md draws: who imports whom, what must not be loaded on the way of a
 * plugin verb, what only certain files may call, how long files get, and what names and texts have no place here.
 *
 *     bun compile/tidy.ts            prints what is wrong, one finding a line
 *     bun compile/tidy.ts --graph    prints which folder imports which
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { pluginNames } from "../src/plugins/table.ts";

const ours = resolve(import.meta.dir, "..");

/**
 * The rooms of src from the top of the house down, and what each may import: rooms below it, single files of them,
 * packages. Type-only imports count as well.
 */
const rooms: Record<string, string[]> = {
  "main.ts": ["runtime", "engine", "plugins/table.ts", "ffi"],
  "runtime": [
    "engine",
    "plugins/table.ts",
    "resources/table.ts",
    "resources/packets",
    "contract",
    "ipam",
    "ffi",
    "cni",
    "net",
    "version.ts",
    "node:util",
  ],
  "engine": [
    "plugins/table.ts",
    "resources/table.ts",
    "resources/delegated/lease.ts",
    "contract",
    "ffi",
    "cni",
    "net",
    "version.ts",
  ],
  "plugins": ["resources", "contract", "ipam", "iptables", "ffi", "cni", "net"],
  "resources": ["contract", "firewalld", "iptables", "ffi", "cni", "net"],
  "contract": ["ffi", "cni", "net"],
  "ipam": ["ffi", "cni", "net"],
  "firewalld": ["ffi"],
  "iptables": ["ffi", "net"],
  "ffi": ["net", "bun:ffi"],
  "cni": ["net"],
  "net": [],
  "version.ts": ["../package.json"],
};
/** Inside `ffi/netlink` the bytes know nothing of the messages. */
const foundations: Record<string, string[]> = {
  "ffi/netlink/wire.ts": [],
  "ffi/netlink/attrs.ts": ["ffi/netlink/wire.ts"],
  "ffi/netlink/uapi": ["ffi/netlink/wire.ts", "ffi/netlink/attrs.ts"],
};
/** Schemas are for the build: they may import zod and one another, and only their types are used. */
const schemaMayImport = ["zod", "cni", "net"];

/** Calls that belong to few files. Sources are looked at without comments and types. */
const banned: { call: RegExp; why: string; except?: RegExp }[] = [
  { call: /\bconsole\.(log|info|debug|table)\b/, why: "stdout belongs to the one result" },
  { call: /\bprocess\.(stdout|stdin|stderr)\b/, why: "loads node's streams: use src/ffi/files.ts" },
  { call: /\bprocess\.exit\(/, why: "runs the runtime's exit work: use exitNow" },
  { call: /\bBun\.(write|file|spawn|spawnSync|\$)\b/, why: "use src/ffi" },
  { call: /\b(fetch|setTimeout|setInterval|queueMicrotask)\(/, why: "everything is synchronous" },
  { call: /\bawait[\s(]/, why: "everything is synchronous" },
  { call: /\beval\(|new Function\(/, why: "no code from text" },
  { call: /\bdlopen\(/, why: "bind through src/ffi/libc.ts", except: /^src\/ffi\/(libc|native)\.ts$/ },
];

const WARN_LINES = 400, MOST_LINES = 700;
const DRAWERS = /^(index|utils?|helpers?|common|constants|types|misc|manager)\.ts$/;

interface Source {
  path: string;
  text: string;
  /** Without types and comments. */
  code: string;
  /** Everything it names in an import, types included; resolved to `src/…` where it is ours. */
  imports: string[];
  /** What is loaded with it. */
  loads: string[];
  /** What is loaded when a function of it asks. */
  loadsLater: string[];
}

const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

function readSource(root: string, path: string): Source {
  const text = readFileSync(join(root, path), "utf8");
  const target = (specifier: string) =>
    specifier.startsWith(".") ? relative(root, resolve(root, dirname(path), specifier)) : specifier;
  const scanned = transpiler.scanImports(text);
  const loads = scanned.filter((one) => one.kind === "import-statement").map((one) => target(one.path));
  const loadsLater = scanned.filter((one) => one.kind !== "import-statement").map((one) => target(one.path));
  // Statements start a line, which texts within templates do not in these sources.
  const statements = [...text.matchAll(/^(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"/gm)].map((match) =>
    target(match[1]!)
  );
  return {
    path,
    text,
    code: transpiler.transformSync(text),
    imports: [...new Set([...statements, ...loads, ...loadsLater])],
    loads,
    loadsLater,
  };
}

function filesBelow(root: string, folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name))).sort();
}

function importDirections(sources: Source[]): string[] {
  const findings: string[] = [];
  const order = Object.keys(rooms);
  for (const [room, uses] of Object.entries(rooms)) {
    const above = uses.filter((used) => order.indexOf(roomOf(used) ?? "") >= 0)
      .filter((used) => order.indexOf(roomOf(used)!) <= order.indexOf(room));
    for (const used of above) findings.push(`compile/tidy.ts: ${room} may not be allowed to import ${used} above it`);
  }
  const parts = { ...rooms, ...foundations };
  for (const source of sources) {
    const inside = source.path.slice("src/".length);
    const part = longestPrefix(inside, Object.keys(parts));
    if (part === undefined) {
      findings.push(`${source.path}: no rule in compile/tidy.ts says what this room may import`);
      continue;
    }
    const allowed = inside.endsWith(".schema.ts") ? schemaMayImport : [part, ...parts[part]!];
    for (const imported of source.imports) {
      const name = imported.replace(/^src\//, "").replace(/^package\.json$/, "../package.json");
      if (longestPrefix(name, allowed) === undefined) findings.push(`${source.path}: must not import ${imported}`);
      if (name.endsWith(".schema.ts") && !inside.endsWith(".schema.ts") && source.loads.includes(imported)) {
        findings.push(`${source.path}: may only import types from ${imported}`);
      }
    }
    if (source.loads.includes("bun:ffi")) {
      findings.push(`${source.path}: only types from bun:ffi; see src/ffi/native.ts`);
    }
  }
  return findings;
}

function roomOf(path: string): string | undefined {
  return longestPrefix(path, Object.keys(rooms));
}

/** Files that import one another in a ring, types and later loading included: a reader finds no place to begin. */
function circles(sources: Source[]): string[] {
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

function longestPrefix(path: string, parts: string[]): string | undefined {
  return parts.filter((part) => path === part || path.startsWith(`${part}/`))
    .sort((a, b) => b.length - a.length)[0];
}

/**
 * What a plugin verb can come to load: all that main.ts loads, and all that is loaded later on the way, except the
 * runtime's part, which a plugin never enters. Nothing outside our sources may be among it.
 */
function hotPath(sources: Map<string, Source>): string[] {
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
    const later = source.loadsLater.filter((one) => !one.startsWith("src/runtime/"));
    for (const next of [...source.loads, ...later]) visit(next, [...way, path]);
  };
  if (!sources.has("src/main.ts")) return ["src/main.ts is missing"];
  visit("src/main.ts", []);
  return findings;
}

/** Lazy loading has one form, in which types hold: `require("./x.ts") as typeof import("./x.ts")`. */
function lazyLoading(sources: Source[]): string[] {
  const findings: string[] = [];
  for (const { path, text } of sources) {
    for (const [call, target] of text.matchAll(/\brequire\("([^"]+)"\)(?!\s+as typeof import\(\s*"\1",?\s*\))/g)) {
      findings.push(`${path}: ${call} must be followed by: as typeof import("${target}")`);
    }
  }
  return findings;
}

/** `any` switches the checks off for all that touches it. One place needs it, and says why. */
function anyTypes(sources: Source[]): string[] {
  return sources.filter(({ path, text }) => path !== "src/contract/resource.ts" && text.includes("no-explicit-any"))
    .map(({ path }) => `${path}: must do without "any"`);
}

function pluginTable(root: string, table: readonly string[]): string[] {
  const folders = filesBelow(root, "src/plugins").filter((path) => basename(dirname(path)) === basename(path, ".ts"))
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

function calls(sources: Source[]): string[] {
  return sources.filter(({ path }) => !path.endsWith(".schema.ts")).flatMap(({ path, code }) =>
    banned.filter(({ call, except }) => !except?.test(path) && call.test(code))
      .map(({ call, why }) => `${path}: calls ${code.match(call)![0]}: ${why}`)
  );
}

function namesAndLengths(root: string, paths: string[]): string[] {
  const findings: string[] = [];
  for (const path of paths) {
    const name = basename(path);
    if (DRAWERS.test(name)) findings.push(`${path}: is a drawer, not a name`);
    if (!/^[a-z0-9.-]+$/.test(name)) findings.push(`${path}: is not in kebab-case`);
    const lines = readFileSync(join(root, path), "utf8").split("\n").length - 1;
    if (name.endsWith(".gen.ts")) continue;
    if (lines > MOST_LINES) findings.push(`${path}: has ${lines} lines, more than ${MOST_LINES}`);
    else if (lines > WARN_LINES) console.warn(`note: ${path} has ${lines} lines`);
  }
  return findings;
}

/** A test file says in its first lines what it shows. */
function testHeads(root: string, paths: string[]): string[] {
  const head = (path: string) => readFileSync(join(root, path), "utf8").match(/^\/\*\*([^]*?)\*\//)?.[1] ?? "";
  return paths.filter((path) => path.endsWith(".test.ts") && head(path).replace(/[\s*]/g, "").length < 20)
    .map((path) => `${path}: does not say at its head what it shows`);
}

/** Texts that tie the tree to the machine it was written on. Put together here so that this file passes. */
const foreignTexts = new RegExp(
  ["/work", "/home/[a-z]+"].map((path) => `(?<![\\w.])${path}/`).join("|") +
    "|" + ["registry" + "\\.npmjs", "deb" + "\\.debian"].join("|"),
);

function machineTexts(root: string): string[] {
  const tracked = Bun.spawnSync(["git", "ls-files", "-z"], { cwd: root }).stdout.toString().split("\0").filter(
    Boolean,
  );
  return tracked.filter((path) => path !== "compile/tidy.ts" && existsSync(join(root, path))).flatMap((path) => {
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    const at = lines.findIndex((line) => foreignTexts.test(line));
    return at < 0 ? [] : [`${path}:${at + 1}: names a path of one machine or a package registry`];
  });
}

/** What is wrong with the tree at `root`, whose table of plugins has these names. */
export function findings(root: string, table: readonly string[]): string[] {
  const sources = filesBelow(root, "src").map((path) => readSource(root, path));
  const everywhere = ["src", "compile", "bench", "demo", "test"].flatMap((folder) => filesBelow(root, folder));
  return [
    ...importDirections(sources),
    ...circles(sources),
    ...lazyLoading(sources),
    ...anyTypes(sources),
    ...hotPath(new Map(sources.map((source) => [source.path, source]))),
    ...pluginTable(root, table),
    ...calls(sources),
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
  } else {
    const found = findings(ours, pluginNames);
    for (const finding of found) console.log(finding);
    if (found.length > 0) process.exit(1);
  }
}
