/** One container with an interface that is not on a bridge, and an address from host-local, called as engines do. */
import { join } from "node:path";
import type { Bench, Benchmark } from "../bench.ts";
import { pluginCall } from "../call.ts";
import { command, hasAddress, linkNames, type Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { firstAddress } from "./attach.ts";

interface Case {
  plugin: string;
  conf: Record<string, unknown>;
  /** What has to be on the host: a script. */
  before: string;
}

const pair = "ip link add bench-m type veth peer name bench-n; ip link set bench-m up; ip link set bench-n up";
const cases: Case[] = [
  { plugin: "ptp", conf: {}, before: "true" },
  { plugin: "macvlan", conf: { master: "bench-m" }, before: pair },
  { plugin: "host-device", conf: { device: "bench-d" }, before: "ip link add bench-d type veth peer name bench-e" },
];

function cycleOf({ machine }: Bench, side: Side, { plugin, conf, before }: Case): Cycle {
  const container = side.makeContainer(plugin);
  side.onHost(() => command(["sh", "-ec", before]));
  const ipam = {
    type: "host-local",
    dataDir: join(machine.scratch, `${side.name}-${plugin}-leases`),
    ranges: [[{ subnet: "10.91.0.0/16" }]],
  };
  const whole = { name: `bench-${plugin}`, type: plugin, ...conf, ipam };
  const call = (verb: string) => prepare(pluginCall(side, plugin, verb, whole, container), machine.scratch);
  const linksInside = () => side.inContainer(container, linkNames);
  return {
    add: call("ADD"),
    del: call("DEL"),
    made(answer) {
      const address = firstAddress(answer);
      if (side.inContainer(container, () => linkNames().includes("eth0") && hasAddress(address))) return;
      throw new Error(`${side.name}: ADD answered, but ${container.id} has no eth0 with ${address}`);
    },
    gone() {
      const left = linksInside();
      if (left.length > 0) throw new Error(`${side.name}: DEL left ${left.join(", ")}`);
    },
  };
}

export const interfaces: Benchmark = {
  name: "interfaces",
  run: (bench) =>
    cases.flatMap((one) => {
      const samples = measureCycles(bench, bench.runs(100), (side) => cycleOf(bench, side, one));
      return cycleRows(`${one.plugin} + host-local`, samples, { add: 0.75, del: 0.5 });
    }),
};
