/**
 * Chained plugins, each run alone on a container that was attached before; and beside them the cost of an empty program
 * that is compiled the same way.
 */
import { join, resolve } from "node:path";
import { build } from "../../compile/build.ts";
import type { Bench, Benchmark, Row } from "../bench.ts";
import { CNI_VERSION, PATH, pluginCall, succeed } from "../call.ts";
import { command, type Container, type Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare } from "../process.ts";
import { summarise } from "../statistics.ts";

const root = resolve(import.meta.dir, "../..");
const ADDRESS = "10.90.0.5", GATEWAY = "10.90.0.1";

interface Case {
  plugin: string;
  conf: Record<string, unknown>;
  targets: { add?: number; del?: number };
  /** Proof that ADD worked: text in the output of a command, in the container or on the host. */
  shows: { text: string; of: string[]; inContainer: boolean };
  /** A script after DEL, in the same namespace: the Go plugin leaves some things until the link is deleted. */
  reset?: string;
}

const cases: Case[] = [
  {
    plugin: "portmap",
    conf: { runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] } },
    targets: { add: 0.12, del: 0.04 },
    shows: { text: `--to-destination ${ADDRESS}:80`, of: ["iptables-save", "-t", "nat"], inContainer: false },
  },
  {
    plugin: "firewall",
    conf: {},
    targets: { add: 0.15, del: 0.1 },
    shows: { text: `-A CNI-FORWARD -s ${ADDRESS}/32`, of: ["iptables-save", "-t", "filter"], inContainer: false },
  },
  {
    plugin: "tuning",
    conf: { mtu: 1400, dataDir: "/run/tuning" },
    targets: {},
    shows: { text: "mtu 1400", of: ["ip", "link", "show", "eth0"], inContainer: true },
  },
  {
    plugin: "sbr",
    conf: {},
    targets: {},
    shows: { text: `from ${ADDRESS}`, of: ["ip", "rule"], inContainer: true },
    reset: "ip address flush dev eth0 scope global; ip route flush table 100; " +
      `ip address add ${ADDRESS}/24 dev eth0; ip route replace default via ${GATEWAY}`,
  },
  {
    plugin: "bandwidth",
    conf: { ingressRate: 8e6, ingressBurst: 8e6, egressRate: 8e6, egressBurst: 8e6 },
    targets: {},
    shows: { text: "bwp", of: ["ip", "link"], inContainer: false },
    reset: "for queue in root ingress; do tc qdisc del dev v-bandwidth $queue 2> /dev/null || true; done",
  },
];

/** A container with a veth pair and one address. */
function attached(side: Side, name: string): { container: Container; prevResult: Record<string, unknown> } {
  const container = side.makeContainer(name), outside = `v-${name}`;
  const ip = (...words: string[]) => command(["ip", ...words]);
  side.onHost(() => {
    ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", container.id);
    ip("address", "add", `${GATEWAY}/24`, "dev", outside);
    ip("link", "set", outside, "up");
  });
  side.inContainer(container, () => {
    ip("address", "add", `${ADDRESS}/24`, "dev", "eth0");
    ip("link", "set", "eth0", "up");
    ip("route", "add", "default", "via", GATEWAY);
  });
  const interfaces = [{ name: outside }, { name: "eth0", sandbox: container.netnsPath }];
  const ips = [{ address: `${ADDRESS}/24`, gateway: GATEWAY, interface: 1 }];
  return { container, prevResult: { cniVersion: CNI_VERSION, interfaces, ips, routes: [{ dst: "0.0.0.0/0" }] } };
}

function cycle({ machine }: Bench, side: Side, { plugin, conf, shows, reset }: Case): Cycle {
  const { container, prevResult } = attached(side, plugin);
  const call = (verb: string) =>
    prepare(pluginCall(side, plugin, verb, { name: "chained", ...conf, prevResult }, container), machine.scratch);
  const run = (words: string[]) =>
    shows.inContainer ? side.inContainer(container, () => command(words)) : command(words);
  const isThere = () => run(shows.of).includes(shows.text);
  return {
    add: call("ADD"),
    del: call("DEL"),
    made() {
      if (!isThere()) {
        throw new Error(`${side.name}: ${plugin} ADD answered, but ${shows.of.join(" ")} does not show it`);
      }
    },
    gone() {
      if (isThere()) throw new Error(`${side.name}: ${plugin} DEL left ${shows.text}`);
      if (reset !== undefined) run(["sh", "-c", reset]);
    },
  };
}

export const chained: Benchmark = {
  name: "chained",
  run(bench) {
    const { scratch, sides } = bench.machine;
    const empty = prepare(
      { path: build(join(scratch, "empty"), { entry: join(root, "bench/cold/empty.ts") }), env: { PATH } },
      scratch,
    );
    const rows: Row[] = [];
    for (const each of cases) {
      const beside: number[] = [];
      const samples = measureCycles(bench, bench.runs(50), (side) => {
        const made = cycle(bench, side, each);
        return side.name !== "alone"
          ? made
          : { ...made, gone: () => (made.gone(), void beside.push(succeed(empty).ms)) };
      });
      const start = `an empty program: ${summarise(beside).median.toFixed(2)} ms`;
      rows.push(...cycleRows(each.plugin, samples, each.targets).map((row) => ({ ...row, note: start })));
      // The next plugin uses the same address.
      for (const side of sides) side.onHost(() => command(["ip", "link", "del", `v-${each.plugin}`]));
    }
    return rows;
  },
};
