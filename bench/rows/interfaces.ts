/** One container with an interface without a bridge and an address from host-local, called like an engine does. */
import { join } from "node:path";
import type { Bench, Benchmark } from "../bench.ts";
import { passResult, pluginCall } from "../call.ts";
import { command, hasAddress, linkNames, type Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { firstAddress } from "./attach.ts";

interface Case {
  plugin: string;
  conf: Record<string, unknown>;
  /** A script that prepares the host. */
  before: string;
  /** The kind of link in ip(8), if the kernel may lack it. Then the rows are omitted. */
  needs?: string;
  /** Debian has no Go plugin of that name. */
  alone?: true;
  targets?: { add: number; del: number };
}

function pair(master: string): string {
  return `ip link show ${master} >/dev/null 2>&1 || { ip link add ${master} type veth peer name far-${master}; ` +
    `ip link set ${master} up; ip link set far-${master} up; }`;
}

const targets = { add: 0.33, del: 0.14 };

export const cases: readonly Case[] = [
  { plugin: "ptp", conf: {}, before: "true", targets },
  { plugin: "macvlan", conf: { master: "bench-m" }, before: pair("bench-m"), targets },
  { plugin: "ipvlan", conf: { master: "bench-i" }, before: pair("bench-i"), needs: "ipvlan" },
  { plugin: "vlan", conf: { master: "bench-v", vlanId: 7 }, before: pair("bench-v"), needs: "vlan id 7" },
  { plugin: "tap", conf: {}, before: "true", alone: true },
  { plugin: "dummy", conf: {}, before: "true", needs: "dummy", alone: true },
  { plugin: "host-device", conf: { device: "bench-d" }, before: "ip link add bench-d type veth peer name bench-e" },
];

export function interfaceCycle(
  { machine }: Bench,
  side: Side,
  { plugin, conf, before }: Case,
  container = side.makeContainer(plugin),
): Cycle {
  side.onHost(() => command(["sh", "-ec", before]));
  const ipam = {
    type: "host-local",
    dataDir: join(machine.scratch, `${side.name}-${plugin}-leases`),
    ranges: [[{ subnet: "10.91.0.0/16" }]],
  };
  const fullConf = { name: `bench-${plugin}`, type: plugin, ...conf, ipam };
  const call = (verb: string) => prepare(pluginCall(side, plugin, verb, fullConf, container), machine.scratch);
  const linksInside = () => side.inContainer(container, linkNames);
  const del = call("DEL");
  return {
    add: call("ADD"),
    del,
    made(result) {
      passResult(result, fullConf, del);
      const address = firstAddress(result);
      if (side.inContainer(container, () => linkNames().includes("eth0") && hasAddress(address))) return;
      throw new Error(`${side.name}: ADD answered, but ${container.id} has no eth0 with ${address}`);
    },
    gone() {
      const leftovers = linksInside();
      if (leftovers.length > 0) throw new Error(`${side.name}: DEL leftovers ${leftovers.join(", ")}`);
    },
  };
}

export const interfaces: Benchmark = {
  name: "interfaces",
  run(bench) {
    const { served, alone, go } = bench.machine;
    return cases.filter(({ needs }) => needs === undefined || isKnown(alone, needs)).flatMap((one) => {
      const sides = one.alone ? [served, alone] : [served, alone, go];
      const samples = measureCycles(bench, bench.runs(100), (side) => interfaceCycle(bench, side, one), { sides });
      return cycleRows(`${one.plugin} + host-local`, samples, one.targets ?? {});
    });
  },
};

function isKnown(side: Side, kind: string): boolean {
  return side.onHost(() => {
    const master = pair("probe");
    const { exitCode } = Bun.spawnSync(["sh", "-ec", `${master}; ip link add link probe name probed type ${kind}`]);
    command(["ip", "link", "del", "probe"]);
    return exitCode === 0;
  });
}
