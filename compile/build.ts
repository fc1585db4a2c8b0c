/**
 * Builds `dist/patchbay`: bundle, flatten, compile, place the code, guard the entry. Run with Bun: `npm run build`.
 *
 * The same sources and the same Bun give the same bytes wherever and whenever they are built; the name of the output
 * file is part of the result, so it is fixed. Needs no network. `--out DIR` builds somewhere else than `dist`.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { alignCode } from "./align-code.ts";
import { guardEntry } from "./entry-guard.ts";
import { flatten, type Target } from "./flatten.ts";
import { leaveHeapCold } from "./heap-warm-up.ts";

const root = resolve(import.meta.dir, "..");
const NAME = "patchbay";

export const flags = [
  "--compile",
  "--target=bun",
  "--minify",
  "--bytecode",
  "--reject-unresolved",
  // Compiling what ran a few hundred times pays in a server; here it starts a thread that the process does not outlive.
  // Measured: 0.5 ms of VERSION, 9 % of an ADD by portmap, and still a compiler for loops that do take long.
  "--compile-jit-policy=100",
  // A program that root runs must not read files of whatever directory it is started in.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
];

/** Builds the binary, or with `entry` a program of another kind in the same way (the benchmarks' cold starts). */
export function build(outDirectory: string, entry?: string): string {
  const temporary = join(outDirectory, `.build-${process.pid}`);
  mkdirSync(temporary, { recursive: true });
  try {
    const compiled = join(temporary, NAME);
    const main = entry ?? flattened(temporary);
    // In its folder and by its bare name: where it stands would become part of what comes out.
    bun([...flags, `--outfile=${compiled}`, basename(main)], dirname(main), temporary);
    const program = readFileSync(compiled);
    leaveHeapCold(program);
    // One large write, and into a new file: the page cache then holds the program in large pieces (align-code.ts).
    const finished = join(temporary, `${NAME}.finished`);
    writeFileSync(finished, guardEntry(alignCode(program)));
    chmodSync(finished, 0o755);
    const out = join(outDirectory, NAME);
    renameSync(finished, out);
    return out;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function bun(words: string[], cwd: string, home: string): void {
  const built = Bun.spawnSync([process.execPath, "build", ...words], {
    cwd,
    // What the caller's environment says to Bun must not decide what comes out.
    env: { PATH: process.env.PATH ?? "", HOME: home },
    stdout: "pipe",
    stderr: "pipe",
  });
  if (built.exitCode !== 0) throw new Error(`bun build failed:\n${built.stderr}${built.stdout}`);
}

/** What each module imports at once, by paths from the root. */
type Imports = Map<string, string[]>;

/**
 * Called for every container, by an engine or by other people's plugins. Each has a program of its own, for which the
 * binary is 0.9 MB larger and it 0.25 ms faster.
 */
const often = ["bridge", "firewall", "host-local", "loopback", "portmap"];

/** A file with all programs that the binary may be called as. */
function flattened(temporary: string): string {
  const bundle = join(temporary, "bundle.js"),
    metafile = join(temporary, "bundle.json"),
    main = join(temporary, "main.js");
  const options = ["--target=bun", "--format=esm", "--minify-syntax", "--reject-unresolved"];
  bun([...options, `--metafile=${metafile}`, `--outfile=${bundle}`, "src/main.ts"], root, temporary);
  const imports = readImports(metafile);
  const plugins = new Map<string, string>();
  for (const path of imports.keys()) {
    const name = /^src\/plugins\/\w+\/([\w-]+)\/\1\.ts$/.exec(path)?.[1];
    if (name !== undefined) plugins.set(name, path);
  }
  const seldom = [...plugins.keys()].filter((name) => !often.includes(name)).sort();
  const targets = [
    ...often.filter((name) => plugins.has(name)).map((name) => plugin([name], [plugins.get(name)!], imports)),
    plugin(seldom, [], imports),
    { eager: loadingOrder(["src/runtime/cli/command-line.ts", "src/main.ts"], imports), mayLoad: () => true },
  ];
  writeFileSync(main, flatten(readFileSync(bundle, "utf8"), targets));
  return main;
}

function plugin(names: string[], paths: string[], imports: Imports): Target {
  const roots = ["src/engine/exec-plugin.ts", "src/engine/verbs/add.ts", ...paths];
  // Where most networks have their addresses from.
  if (names.includes("bridge")) roots.push("src/plugins/ipam/host-local/host-local.ts");
  return {
    names,
    eager: loadingOrder([...roots, "src/main.ts"], imports),
    mayLoad: (path) => !path.startsWith("src/runtime/"),
  };
}

function readImports(metafile: string): Imports {
  const { inputs } = JSON.parse(readFileSync(metafile, "utf8")) as {
    inputs: Record<string, { imports: { path: string; kind: string }[] }>;
  };
  const imports: Imports = new Map();
  for (const [path, input] of Object.entries(inputs)) {
    imports.set(path, input.imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => path));
  }
  return imports;
}

/** The roots and all that they import, each behind what it imports itself. */
function loadingOrder(roots: readonly string[], imports: Imports): string[] {
  const seen = new Set<string>(), order: string[] = [];
  const load = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    imports.get(path)?.forEach(load);
    order.push(path);
  };
  roots.forEach(load);
  return order;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { out: { type: "string", default: join(root, "dist") } } });
  const started = performance.now();
  try {
    const out = build(resolve(values.out));
    const megabytes = (readFileSync(out).length / 1e6).toFixed(0);
    console.log(`built ${out} (${megabytes} MB, ${((performance.now() - started) / 1000).toFixed(1)} s)`);
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}
