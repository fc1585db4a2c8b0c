/** Where a network does not do what it seems to: for lint, plan, status and networks. */
import { asRead } from "../cni/json.ts";
import type { Host } from "../contract/host.ts";
import type { Caveat, Earlier, PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { onHost } from "../engine/on-host.ts";
import { ipamTypeOf } from "../engine/plugin-parts.ts";
import { openSession } from "../engine/run.ts";
import { warn } from "../process/warn.ts";
import { loadPlugin } from "../plugins/table.ts";
import type { Network, NetworkPlugin } from "./conf/network.ts";
import { pluginConfig } from "./plugin-config.ts";
import { attachmentsToNetwork } from "./records.ts";
import type { AttachmentRequest, Runtime } from "./plugin-call.ts";

/** A list for each plugin of the network. Without a host, those that the files tell. */
export function caveatsOf(network: Network, host: Host | undefined): Caveat[][] {
  const before: Earlier[] = [];
  return network.plugins.map((plugin) => {
    const { type } = plugin,
      document = documentOf(network, plugin),
      placed = { type, document, own: loadPlugin(type) };
    const found = readable("caveats", plugin, () => document).flatMap(({ own, conf }) =>
      own.caveats?.(conf, { ...placed, before, host }) ?? []
    );
    before.push(placed);
    return found;
  });
}

/** What a plugin is told of on this host, as lines. What ADD and `plan` refuse in words of their own is `refused`. */
interface CaveatLines {
  warnings: string[];
  refused: string[];
}

/** For each plugin of the network. */
export function caveatsHere(network: Network): CaveatLines[] {
  const caveats = onHost((host) => caveatsOf(network, openSession().hostOf(host)));
  return caveats.map((found, index) => {
    const { type } = network.plugins[index]!;
    const lines = (isRefused?: true) =>
      found.filter((one) => one.isRefused === isRefused)
        .map(({ key, text }) => key === "" ? `${type}: ${text}` : `${type}: "${key}" ${text}`);
    return { warnings: lines(), refused: lines(true) };
  });
}

/** The addresses that every container of the network gets, whoever has them. */
export function fixedAddresses(network: Network): string[] {
  return network.plugins.flatMap((plugin) =>
    readable("fixedAddresses", plugin, () => documentOf(network, plugin)).flatMap(({ own, conf }) =>
      own.fixedAddresses?.(conf) ?? []
    )
  );
}

/** Capability arguments may choose others. */
export function warnOfTaken(runtime: Runtime, network: Network, request: AttachmentRequest): void {
  const fixed = Object.hasOwn(request.capabilityArgs, "ips") ? [] : fixedAddresses(network);
  if (fixed.length === 0) return;
  const { takenAddresses } = require("./taken-addresses.ts") as typeof import("./taken-addresses.ts");
  const others = attachmentsToNetwork(runtime, network.name).filter((one) => one.containerId !== request.containerId);
  for (const line of takenAddresses(fixed, others.map(({ recorded }) => recorded))) {
    warn(`network ${network.name}: ${line}`);
  }
}

function documentOf(network: Network, plugin: NetworkPlugin): Record<string, unknown> {
  return asRead(pluginConfig(network, plugin, {})) as Record<string, unknown>;
}

/** The plugin and its IPAM plugin, where they are ours, have an answer, and take the configuration. */
function readable(
  answer: "caveats" | "fixedAddresses",
  { type, config }: NetworkPlugin,
  document: () => Record<string, unknown>,
) {
  const found: { own: PluginDefinition<PluginConfig>; conf: PluginConfig }[] = [];
  for (const name of new Set([type, ipamTypeOf(config)])) {
    const own = loadPlugin(name);
    if (own?.[answer] === undefined) continue;
    try {
      found.push({ own, conf: own.validate(document()) });
    } catch {
      // ADD and STATUS say why.
    }
  }
  return found;
}
