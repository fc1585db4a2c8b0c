/** host-local alone, in a /16 with a number of leases. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { CNI_VERSION, pluginCall, succeed } from "../call.ts";
import type { Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { firstAddress } from "./attach.ts";

/** Leases in the directory, and pairs in a full run; fewer for many leases, as Go's plugin always reads all files. */
const sizes: [leases: number, runs: number][] = [
  [10, 200],
  [100, 200],
  [1_000, 100],
  [10_000, 25],
  [40_000, 10],
  [60_000, 8],
];

/** With more leases, CHECK after every run would take longer than the runs, so only the first run is checked. */
const CHECKED_EACH_TIME = 1_000;

function cycle({ machine }: Bench, side: Side, leases: number): Cycle {
  const dataDir = join(machine.scratch, `${side.name}-${leases}`);
  const name = "leases";
  fill(join(dataDir, name), leases);
  const conf = { name, ipam: { type: "host-local", dataDir, ranges: [[{ subnet: "10.0.0.0/16" }]] } };
  const container = side.makeContainer(`leases-${leases}`);
  const call = (verb: string, extra = {}) =>
    prepare(pluginCall(side, "host-local", verb, { ...conf, ...extra }, container), machine.scratch);
  const check = call("CHECK", { prevResult: { cniVersion: CNI_VERSION } });
  let isChecked = false;
  return {
    add: call("ADD"),
    del: call("DEL"),
    made(result) {
      const address = firstAddress(result);
      if (place(address) <= leases) throw new Error(`${side.name}: gave ${address}, which is taken`);
      if (!isChecked) succeed(check);
    },
    gone() {
      if (!isChecked && check.run().code === 0) throw new Error(`${side.name}: the address is still leased`);
      isChecked = leases > CHECKED_EACH_TIME;
    },
  };
}

/** Leases the addresses from 10.0.0.2 on in the Go plugin's format, which ours also reads. */
function fill(directory: string, leases: number): void {
  mkdirSync(directory, { recursive: true });
  let last = "";
  for (let index = 2; index < leases + 2; index++) {
    last = `10.0.${index >> 8}.${index & 255}`;
    writeFileSync(join(directory, last), `before-${index}\r\neth0`);
  }
  writeFileSync(join(directory, "last_reserved_ip.0"), last);
}

function place(address: string): number {
  const [, , high, low] = address.split(".").map(Number);
  return high! * 256 + low! - 1;
}

export const hostLocal: Benchmark = {
  name: "host-local",
  run(bench) {
    const rows: Row[] = [];
    for (const [leases, runs] of bench.quick ? sizes.slice(0, 2) : sizes) {
      const samples = measureCycles(bench, bench.runs(runs), (side) => cycle(bench, side, leases));
      const target = leases === 40_000 ? { add: 0.008 } : {};
      const measured = cycleRows(`host-local, ${leases.toLocaleString("en")} leases,`, samples, target);
      rows.push(...measured.map((row) => ({ ...row, leases })));
    }
    return rows;
  },
};
