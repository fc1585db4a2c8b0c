/** host-local alone, in a /16 in which a number of addresses is leased already. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { CNI_VERSION, pluginCall, succeed } from "../call.ts";
import type { Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { firstAddress } from "./attach.ts";

/** Leases in the directory, and how many pairs a full run takes: Go's plugin reads every lease file each time. */
const sizes: [leases: number, runs: number][] = [
  [10, 200],
  [100, 200],
  [1_000, 100],
  [10_000, 25],
  [40_000, 10],
  [60_000, 8],
];

/** Beyond this, looking with CHECK at every run would take longer than the runs. */
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
  let looked = false;
  return {
    add: call("ADD"),
    del: call("DEL"),
    made(answer) {
      const address = firstAddress(answer);
      if (place(address) <= leases) throw new Error(`${side.name}: gave ${address}, which is taken`);
      if (!looked) succeed(check);
    },
    gone() {
      if (!looked && check.run().code === 0) throw new Error(`${side.name}: the address is still leased`);
      looked = leases > CHECKED_EACH_TIME;
    },
  };
}

/** Leases 10.0.0.2 and what follows, as the Go plugin writes them; ours takes such a directory over. */
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
      const target = leases === 40_000 ? { add: 0.015 } : {};
      const measured = cycleRows(`host-local, ${leases.toLocaleString("en")} leases,`, samples, target);
      rows.push(...measured.map((row) => ({ ...row, leases })));
    }
    return rows;
  },
};
