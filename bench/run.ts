/**
 * `npm run bench`: compares our plugins with Debian's Go plugins, paired in one run, and breaks down our own time.
 * Runs as root in its own namespaces and does not change the machine.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Refused } from "../compile/arguments.mjs";
import { defineTool, runTool } from "../compile/tool.ts";
import type { Bench, Benchmark, Row } from "./bench.ts";
import { openMachine } from "./machine.ts";
import { picture } from "./picture.ts";
import { readAgain } from "./process.ts";
import { type Environment, environment, formatReport, formatRow, loadNow } from "./report.ts";
import { attach, loopback, masquerade } from "./rows/attach.ts";
import { burst, firstBurst } from "./rows/burst.ts";
import { byCall } from "./rows/by-call.ts";
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
import { ovs } from "./rows/ovs.ts";
import { paused } from "./rows/paused.ts";
import { runtime } from "./rows/runtime.ts";
import { staticAddresses } from "./rows/small.ts";

const root = resolve(import.meta.dir, "..");
const GO_PLUGINS = process.env.PATCHBAY_TEST_GO_PLUGINS ?? "/usr/lib/cni";
const benchmarks: Benchmark[] = [
  loopback,
  staticAddresses,
  attach,
  masquerade,
  interfaces,
  ovs,
  paused,
  runtime,
  chain,
  chained,
  mappings,
  netavark,
  hostLocal,
  dhcp,
  dhcpLeases,
  burst,
  firstBurst,
  byCall,
  floor,
  coldStart,
  memory,
  micro,
];

interface Wanted {
  only: string[] | undefined;
  quick: boolean;
  out: string | undefined;
  program: string;
  netavark: string | undefined;
}

/** Runs this program again in its own namespaces, which end with it. */
async function enterNamespaces(argv: readonly string[]): Promise<number> {
  const script = 'mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/netns && exec "$@"';
  const again = [process.execPath, import.meta.path, "--inside", ...argv];
  // The bench is process 1 there: calls start a resident where the caller is like that.
  const unshare = [
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child",
    "--propagation",
    "private",
    "sh",
    "-c",
    script,
    "sh",
    ...again,
  ];
  const inner = Bun.spawn(unshare, { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  // Neither unshare(1) nor a process 1 ends at these.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => inner.kill("SIGKILL"));
  await inner.exited;
  if (inner.signalCode !== null) {
    console.error(`[bench] ended by ${inner.signalCode}; nothing was written`);
    return 1;
  }
  return inner.exitCode ?? 1;
}

async function measure(wanted: Wanted): Promise<number> {
  const { program: patchbay, quick, only } = wanted;
  for (const needed of [patchbay, join(GO_PLUGINS, "bridge")]) {
    if (!existsSync(needed)) throw new Refused(`${needed} is missing; npm run bench sets everything up`);
  }
  let status = 0;
  const scratch = mkdtempSync(join(tmpdir(), "patchbay-bench-"));
  const machine = openMachine(patchbay, GO_PLUGINS, scratch);
  try {
    const bench: Bench = {
      machine,
      netavark: wanted.netavark,
      quick,
      runs: (full) => (quick ? Math.min(full, 2) : full),
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
    for (const benchmark of benchmarks.filter(({ name }) => only?.includes(name) ?? true)) {
      console.error(`[bench] ${benchmark.name}`);
      try {
        for (const row of await benchmark.run(bench)) {
          console.error(`        ${formatRow(row)}`);
          rows.push(row);
        }
      } catch (error) {
        console.error(`[bench] ${benchmark.name} FAILED`, error);
        status = 1;
      }
    }
    about.load += `, ${loadNow()} after`;
    report(about, rows, wanted);
    return status;
  } finally {
    machine.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function report(about: Environment, rows: Row[], { quick, only, out: asked }: Wanted) {
  const text = formatReport(about, rows, quick);
  console.log(text);
  const out = asked ?? (quick || only ? undefined : join(root, "bench/results"));
  if (out === undefined) return;
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "latest.txt"), text);
  writeFileSync(
    join(out, "latest.json"),
    `${JSON.stringify({ about, quick, rows }, undefined, 2)}\n`,
  );
  if (rows.some(({ leases }) => leases !== undefined)) writeFileSync(join(out, "leases.svg"), picture(rows));
}

export const tool = defineTool({
  name: "bench",
  about: "Compares our plugins with Debian's Go plugins, paired in one run, as root in namespaces of its own.",
  options: {
    quick: {
      type: "boolean",
      default: false,
      about: "runs everything once or twice; the figures mean nothing, and go to --out alone",
    },
    only: { type: "string", value: "A,B", about: "only these benchmarks; the figures go to --out alone" },
    list: { type: "boolean", default: false, about: "prints the names of the benchmarks" },
    program: { type: "string", value: "FILE", about: "another build than dist/patchbay" },
    netavark: { type: "string", value: "FILE", about: "another netavark than Debian's to compare with" },
    out: {
      type: "string",
      value: "DIR",
      about: "where latest.txt, latest.json and leases.svg go, instead of bench/results",
    },
    inside: { type: "boolean", default: false },
  },
  needs: ({ values }) => values.list ? "packages" : "all",
  begin({ values: { list, inside, quick, only, out, program, netavark } }, argv) {
    const names = benchmarks.map(({ name }) => name), wanted = only?.split(",");
    const unknown = wanted?.filter((name) => !names.includes(name)) ?? [];
    if (unknown.length > 0) throw new Refused(`no benchmark is called ${unknown.join(", ")}; see --list`);
    const missing = [program, netavark].find((path) => path !== undefined && !existsSync(path));
    if (missing !== undefined) throw new Refused(`${missing} is missing`);
    if (list) return () => console.log(names.join("\n"));
    if (!inside) return () => enterNamespaces(argv);
    return () =>
      measure({
        only: wanted,
        quick,
        out,
        program: resolve(program ?? join(root, "dist/patchbay")),
        netavark: netavark && resolve(netavark),
      });
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
