/**
 * `npm run bench`: compares our plugins with Debian's Go plugins, paired in one run, and breaks down our own time.
 *
 *     --quick         smoke mode: runs everything once or twice; the figures mean nothing and are only written with --out
 *     --only a,b      only these benchmarks (`--list` prints their names); likewise only written with --out
 *     --program FILE  another build than dist/patchbay
 *     --netavark FILE another netavark than Debian's to compare with, in the rows of netavark
 *     --out DIR       the directory of latest.txt, latest.json and leases.svg; by default bench/results
 *
 * Runs as root in its own namespaces and does not change the machine.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Bench, Benchmark, Row } from "./bench.ts";
import { openMachine } from "./machine.ts";
import { picture } from "./picture.ts";
import { readAgain } from "./process.ts";
import { type Environment, environment, formatReport, formatRow, loadNow } from "./report.ts";
import { attach, loopback, masquerade } from "./rows/attach.ts";
import { burst } from "./rows/burst.ts";
import { chain } from "./rows/chain.ts";
import { chained } from "./rows/chained.ts";
import { coldStart } from "./rows/cold-start.ts";
import { dhcp, dhcpLeases } from "./rows/dhcp.ts";
import { floor } from "./rows/floor.ts";
import { hostLocal } from "./rows/host-local.ts";
import { interfaces } from "./rows/interfaces.ts";
import { mappings } from "./rows/mappings.ts";
import { memory } from "./rows/memory.ts";
import { micro } from "./rows/micro.ts";
import { netavark } from "./rows/netavark.ts";
import { runtime } from "./rows/runtime.ts";
import { staticAddresses, version } from "./rows/small.ts";

const root = resolve(import.meta.dir, "..");
const GO_PLUGINS = "/usr/lib/cni";
const benchmarks: Benchmark[] = [
  version,
  loopback,
  staticAddresses,
  attach,
  masquerade,
  interfaces,
  runtime,
  chain,
  chained,
  mappings,
  netavark,
  hostLocal,
  dhcp,
  dhcpLeases,
  burst,
  floor,
  coldStart,
  memory,
  micro,
];

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    list: { type: "boolean", default: false },
    out: { type: "string" },
    program: { type: "string" },
    netavark: { type: "string" },
    inside: { type: "boolean", default: false },
  },
});

if (values.list) {
  console.log(benchmarks.map(({ name }) => name).join("\n"));
} else if (values.inside) {
  await measure();
} else {
  process.exitCode = enterNamespaces();
}

/** Runs this program again in its own namespaces, which end with it. */
function enterNamespaces(): number {
  const script = 'mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/netns && exec "$@"';
  const again = [process.execPath, import.meta.path, "--inside", ...process.argv.slice(2)];
  const unshare = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", script, "sh", ...again];
  const inner = Bun.spawnSync(unshare, { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  if (inner.signalCode !== undefined && inner.signalCode !== null) {
    console.error(`[bench] ended by ${inner.signalCode}; nothing was written`);
    return 1;
  }
  return inner.exitCode;
}

async function measure() {
  const patchbay = resolve(values.program ?? join(root, "dist/patchbay"));
  for (const needed of [patchbay, join(GO_PLUGINS, "bridge")]) {
    if (!existsSync(needed)) throw new Error(`${needed} is missing; npm run bench sets everything up`);
  }
  const wanted = values.only?.split(",");
  const unknown = wanted?.filter((name) => !benchmarks.some((one) => one.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`no benchmark is called ${unknown.join(", ")}; see --list`);

  const scratch = mkdtempSync(join(tmpdir(), "patchbay-bench-"));
  const machine = openMachine(patchbay, GO_PLUGINS, scratch);
  try {
    const bench: Bench = {
      machine,
      netavark: values.netavark && resolve(values.netavark),
      quick: values.quick,
      runs: (full) => (values.quick ? Math.min(full, 2) : full),
    };
    // All sides start with the same page cache, filled by one sequential read.
    for (
      const path of [
        patchbay,
        ...["bridge", "host-local", "loopback", "static", "portmap", "firewall", "tuning", "sbr", "bandwidth", "dhcp"]
          .map((
            name,
          ) => join(GO_PLUGINS, name)),
      ]
    ) {
      readAgain(path);
    }
    const about = environment(scratch);
    const rows: Row[] = [];
    for (const benchmark of benchmarks.filter(({ name }) => wanted?.includes(name) ?? true)) {
      console.error(`[bench] ${benchmark.name}`);
      try {
        for (const row of await benchmark.run(bench)) {
          console.error(`        ${formatRow(row)}`);
          rows.push(row);
        }
      } catch (error) {
        console.error(`[bench] ${benchmark.name} FAILED`, error);
        process.exitCode = 1;
      }
    }
    about.load += `, ${loadNow()} after`;
    report(about, rows);
  } finally {
    machine.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function report(about: Environment, rows: Row[]) {
  const text = formatReport(about, rows, values.quick);
  console.log(text);
  const out = values.out ?? (values.quick || values.only ? undefined : join(root, "bench/results"));
  if (out === undefined) return;
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "latest.txt"), text);
  writeFileSync(
    join(out, "latest.json"),
    `${JSON.stringify({ about, quick: values.quick, rows }, undefined, 2)}\n`,
  );
  if (rows.some(({ leases }) => leases !== undefined)) writeFileSync(join(out, "leases.svg"), picture(rows));
}
