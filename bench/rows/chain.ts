/**
 * The chain that podman and nerdctl run: bridge with masquerading, portmap, firewall, tuning. Ours runs by
 * `patchbay add` and `del`, and as an engine calls the plugins: one after the other, each with the previous result. The
 * Go plugins run as the latter, without the time of the engine that would start them.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Benchmark } from "../bench.ts";
import { CNI_VERSION, PATH, pluginCall, succeed } from "../call.ts";
import { command, type Container, type Side } from "../machine.ts";
import { type Cycle, cycleRows, measureCycles } from "../pairs.ts";
import { prepare, type Runnable } from "../process.ts";
import { bridgeConf, firstAddress, requireAttached, requireDetached } from "./attach.ts";

export const portMappings = [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }];
const SYSCTL = "net.ipv4.conf.eth0.arp_filter";

export function pluginsOf(leases: string): Record<string, unknown>[] {
  const { name: _, ...bridge } = bridgeConf(leases, true);
  return [
    bridge,
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "firewall" },
    { type: "tuning", sysctl: { [SYSCTL]: "1" } },
  ];
}

/** What an engine derives of one plugin's configuration. */
export function confOf(
  plugin: Record<string, unknown>,
  mappings: typeof portMappings,
  prevResult: unknown,
): Record<string, unknown> {
  const { capabilities, ...conf } = plugin;
  return { name: "chain", ...conf, runtimeConfig: capabilities && { portMappings: mappings }, prevResult };
}

/** Counts only the plugins' own time. DEL runs in reverse, with the result of ADD. */
function inSequence(bench: Bench, side: Side, container: Container, plugins: Record<string, unknown>[]) {
  let result: unknown;
  const sequence = (verb: "ADD" | "DEL"): Runnable => {
    let last = "";
    return {
      run() {
        let ms = 0;
        for (const plugin of verb === "ADD" ? plugins : plugins.toReversed()) {
          const prevResult = verb === "ADD" && plugin === plugins[0] ? undefined : result;
          const fullConf = confOf(plugin, portMappings, prevResult);
          const call = prepare(
            pluginCall(side, String(plugin.type), verb, fullConf, container),
            bench.machine.scratch,
          );
          ms += succeed(call).ms;
          last = call.stdout();
          if (verb === "ADD") result = JSON.parse(last);
        }
        return { ms, code: 0 };
      },
      stdout: () => last,
      stderr: () => "",
    };
  };
  return { add: sequence("ADD"), del: sequence("DEL") };
}

function inOneProcess(bench: Bench, side: Side, container: Container, plugins: Record<string, unknown>[]) {
  const { machine } = bench;
  const networks = join(machine.scratch, `${side.name}-chain`);
  mkdirSync(networks, { recursive: true });
  writeFileSync(
    join(networks, "chain.conflist"),
    JSON.stringify({ cniVersion: CNI_VERSION, name: "chain", plugins }),
  );
  const call = (verb: string) => {
    const args = [verb, "--cache-dir", join(machine.scratch, `${side.name}-cache`), "chain", container.netnsPath];
    const env = { PATH, ...side.environment, NETCONFPATH: networks, CAP_ARGS: JSON.stringify({ portMappings }) };
    return prepare({ path: machine.patchbay, args, env }, machine.scratch);
  };
  return { add: call("add"), del: call("del") };
}

export function chainCycle(
  bench: Bench,
  side: Side,
  how: "exec" | "runtime",
  container = side.makeContainer(`chain-${how}`),
): Cycle {
  const leases = join(bench.machine.scratch, `${side.name}-chain-${how}`);
  mkdirSync(leases, { recursive: true });
  const plugins = pluginsOf(leases);
  let address = "";
  return {
    ...side.name === "go" || how === "exec"
      ? inSequence(bench, side, container, plugins)
      : inOneProcess(bench, side, container, plugins),
    made(result) {
      address = firstAddress(result);
      requireAttached(side, container, address);
      const rules = command(["iptables-save"]);
      for (const rule of [`-s ${address}/32`, `--to-destination ${address}:80`, `-A CNI-FORWARD -d ${address}/32`]) {
        if (!rules.includes(rule)) throw new Error(`${side.name}: no rule with ${rule}`);
      }
      const value = side.inContainer(container, () => command(["sysctl", "-n", SYSCTL])).trim();
      if (value !== "1") throw new Error(`${side.name}: ${SYSCTL} is ${value}`);
    },
    gone() {
      requireDetached(side, container);
      if (command(["iptables-save"]).includes(address)) {
        throw new Error(`${side.name}: rules for ${address} are left`);
      }
    },
  };
}

export const chain: Benchmark = {
  name: "chain",
  run: (bench) => [
    ...cycleRows(
      "bridge ipMasq + portmap + firewall + tuning",
      measureCycles(bench, bench.runs(50), (side) => chainCycle(bench, side, "runtime")),
      { add: 0.08, del: 0.03 },
    ),
    ...cycleRows(
      "the same chain, each plugin called,",
      measureCycles(bench, bench.runs(50), (side) => chainCycle(bench, side, "exec")),
      { add: 0.12, del: 0.055 },
    ),
  ],
};
