/**
 * The same attachment by our runtime, `patchbay add`, in one process, against the Go plugins without the time of the
 * engine that would start them.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark } from "../bench.ts";
import { CNI_VERSION, PATH, pluginCall } from "../call.ts";
import type { Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { bridgeConf, firstAddress, requireAttached, requireDetached } from "./attach.ts";

function cycle({ machine }: Bench, side: Side): Cycle {
  const container = side.makeContainer("runtime");
  const leases = join(machine.scratch, `${side.name}-runtime-leases`);
  const networks = join(machine.scratch, `${side.name}-networks`);
  for (const directory of [leases, networks]) mkdirSync(directory, { recursive: true });
  const { name, ...plugin } = bridgeConf(leases, false);
  const list = { cniVersion: CNI_VERSION, name, plugins: [plugin] };
  const call = (verb: string) => {
    if (side.name === "go") {
      return prepare(pluginCall(side, "bridge", verb, { name, ...plugin }, container), machine.scratch);
    }
    writeFileSync(join(networks, "bench.conflist"), JSON.stringify(list));
    const cache = join(machine.scratch, `${side.name}-cache`);
    const args = [verb.toLowerCase(), "--cache-dir", cache, String(name), container.netnsPath];
    const env = { PATH, ...side.environment, NETCONFPATH: networks, CNI_PATH: side.bin };
    return prepare({ path: machine.patchbay, args, env }, machine.scratch);
  };
  return {
    add: call("ADD"),
    del: call("DEL"),
    made: (result) => requireAttached(side, container, firstAddress(result)),
    gone: () => requireDetached(side, container),
  };
}

export const runtime: Benchmark = {
  name: "runtime",
  run: (bench) =>
    cycleRows(
      "patchbay add/del, bridge + host-local,",
      measureCycles(bench, bench.runs(200), (side) => cycle(bench, side)),
    ),
};
