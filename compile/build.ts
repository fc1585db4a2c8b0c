/**
 * Builds `dist/patchbay`: bundle, flatten, compile, put our own code at its entry. Run with Bun:
 * `npm run build`.
 *
 * The build is reproducible: the same sources, Bun and gcc give the same bytes. The name of the output file is part
 * of the result, so it is fixed. Needs no network.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { replaceEntry } from "./entry.ts";
import { flatten, type Target } from "./flatten.ts";
import { pluginNames } from "../src/plugins/table.ts";
import { type Architecture, architectureNames, architectures } from "./architectures.ts";
import { Refused } from "./arguments.mjs";
import { bunExecutable } from "./bun-executable.mjs";
import { compileNative } from "./native.ts";
import { defineTool, root, runTool } from "./tool.ts";

const NAME = "patchbay";

export const flags = [
  "--compile",
  "--minify",
  "--bytecode",
  "--reject-unresolved",
  // The default compiles what ran a few hundred times, in a thread; our processes end before that pays. Measured: 0.5 ms
  // of VERSION, 9 % of an ADD by portmap. Long loops are still compiled.
  "--compile-jit-policy=100",
  // A program that root runs must not read files of its working directory.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
];

/** For another processor or C library than this machine's, with the executable that compile/setup.mjs has fetched. */
function targetFlags(architecture: Architecture): string[] {
  if (architecture === process.arch) return ["--target=bun"];
  return [
    `--target=${architectures[architecture].target}`,
    `--compile-executable-path=${bunExecutable(architecture)}`,
  ];
}

interface Wanted {
  architecture?: Architecture;
  /** Another program than ours, built in the same way: for the benchmarks of cold starts. */
  entry?: string;
}

/** Returns the path of the program. */
export function build(outDirectory: string, { architecture = "x64", entry }: Wanted = {}): string {
  const temporary = join(outDirectory, `.build-${process.pid}`);
  mkdirSync(temporary, { recursive: true });
  try {
    const compiled = join(temporary, NAME);
    const main = entry ?? flattened(temporary, architecture);
    // In its folder and by its bare name, because the path would become part of the result.
    const words = [...targetFlags(architecture), ...flags, `--outfile=${compiled}`, basename(main)];
    bun(words, dirname(main), temporary);
    // One large write into a new file: the page cache then holds the program in large folios (decision 6).
    const finished = join(temporary, `${NAME}.finished`);
    writeFileSync(finished, replaceEntry(readFileSync(compiled), compileNative("entry", architecture)));
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
    // Variables for Bun in the caller's environment must not change the result.
    env: { PATH: process.env.PATH ?? "", HOME: home },
    stdout: "pipe",
    stderr: "pipe",
  });
  if (built.exitCode !== 0) throw new Error(`bun build failed:\n${built.stderr}${built.stdout}`);
}

/** The imports of each module, without those loaded later; paths from the root. */
type Imports = Map<string, string[]>;

/** Modules of which most calls of plugins load one or more: ADD and DEL, on a host with nf_tables. */
const OFTEN = [
  "src/engine/verbs/del.ts",
  ...["main/bridge", "main/loopback", "main/ptp", "ipam/host-local", "ipam/patchbay-cluster"].map(mainModule),
  "src/ffi/netlink/route/remove-link.ts",
];

/** The same for what writes rules. */
const OFTEN_WITH_RULES = [
  ...["meta/firewall", "meta/portmap", "meta/tuning"].map(mainModule),
  "src/interop/firewalld/client.ts",
  "src/interop/iptables/nft-table.ts",
  "src/resources/packets/masquerade/masquerade.ts",
  ...["firewall", "masquerade", "port-mappings"].map((theme) => `src/resources/packets/${theme}/iptables.ts`),
];

function mainModule(plugin: string): string {
  return `src/plugins/${plugin}/${plugin.slice(plugin.indexOf("/") + 1)}.ts`;
}

/** The same for the runtime, with `add` and `del`. */
const OFTEN_BY_RUNTIME = [
  ...OFTEN,
  ...OFTEN_WITH_RULES,
  "src/engine/verbs/add.ts",
  "src/ffi/signals.ts",
  "src/frontends/podman/call-of-driver.ts",
  "src/resources/packets/port-mappings/nft-elements.ts",
  ...["cli/commands/add", "cli/commands/del", "answers/answered-add", "cli/interruptible", "cli/misspelling-warnings"]
    .map((name) => `src/frontends/${name}.ts`),
  "src/runtime/container-networks.ts",
];

/** The same for netavark, with `setup` and `teardown`. */
const OFTEN_BY_NETAVARK = [
  "src/ffi/netlink/route/remove-link.ts",
  "src/interop/firewalld/client.ts",
  "src/interop/iptables/nft-table.ts",
  "src/resources/packets/localhost-access.ts",
];

/** Writes a file with three programs, one for all plugins, one for netavark and one for the runtime, and returns its path. */
function flattened(temporary: string, architecture: Architecture): string {
  const bundle = join(temporary, "bundle.js"),
    metafile = join(temporary, "bundle.json"),
    main = join(temporary, "main.js");
  const options = ["--target=bun", "--format=esm", "--minify-syntax", "--reject-unresolved"];
  bun(
    [...options, ...nativePrograms(architecture), `--metafile=${metafile}`, `--outfile=${bundle}`, "src/main.ts"],
    root,
    temporary,
  );
  const imports = readImports(metafile);
  const program = (often: readonly string[][], ...roots: string[]): Target => ({
    eager: loadingOrder([...roots, "src/main.ts"], imports),
    often: often.map((paths) => new Set(loadingOrder(paths, imports))),
  });
  const targets = [
    {
      names: pluginNames,
      ...program([OFTEN, OFTEN_WITH_RULES], "src/engine/exec-plugin.ts", "src/engine/verbs/add.ts"),
    },
    {
      names: ["netavark"],
      ...program(
        [OFTEN_BY_NETAVARK],
        "src/frontends/netavark/program/command-line.ts",
        "src/frontends/netavark/program/setup-teardown.ts",
        "src/engine/verbs/add.ts",
        "src/engine/verbs/del.ts",
        "src/plugins/netavark/netavark-bridge/netavark-bridge.ts",
      ),
    },
    program([OFTEN_BY_RUNTIME], "src/frontends/cli/command-line.ts"),
  ];
  writeFileSync(main, flatten(readFileSync(bundle, "utf8"), targets));
  return main;
}

/** The programs that src/ffi/reaper.ts starts, as its constants. */
export function nativePrograms(architecture: Architecture): string[] {
  return ["reaper", "holder"].map((name) => {
    const text = Buffer.from(compileNative(name, architecture)).toString("base64");
    return `--define=NATIVE_${name.toUpperCase()}="${text}"`;
  });
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

/** The roots and all that they import, each module after its own imports. Throws for a root that is not in the bundle. */
function loadingOrder(roots: readonly string[], imports: Imports): string[] {
  const seen = new Set<string>(), order: string[] = [];
  const load = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    imports.get(path)?.forEach(load);
    order.push(path);
  };
  for (const root of roots) {
    if (!imports.has(root)) throw new Error(`compile/build.ts names ${root}, which is not in the bundle`);
    load(root);
  }
  return order;
}

const names = architectureNames.join(", ");

const tool = defineTool({
  name: "build",
  call: "npx bun compile/build.ts",
  about: "Builds the program. `npm run build` also fetches what that needs, and writes down what it was built from.",
  options: {
    arch: {
      type: "string",
      value: "NAME",
      default: "x64",
      about: `for this processor and C library: ${names}`,
    },
    out: { type: "string", value: "DIR", about: "where the program goes, instead of dist or its folder there" },
  },
  needs: "packages",
  begin({ values: { arch, out } }) {
    if (!Object.hasOwn(architectures, arch)) {
      throw new Refused(`there is no build for ${arch}; --arch takes ${names}`);
    }
    const architecture = arch as Architecture;
    return () => {
      const started = performance.now();
      try {
        const program = build(resolve(out ?? join(root, architectures[architecture].out)), { architecture });
        const megabytes = (readFileSync(program).length / 1e6).toFixed(0);
        console.log(`built ${program} (${megabytes} MB, ${((performance.now() - started) / 1000).toFixed(1)} s)`);
        return 0;
      } catch (error) {
        console.error((error as Error).message);
        return 1;
      }
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
