/** How full the pools of addresses are: for people, since STATUS does not count what is leased. */
import { asRead } from "../../cni/json.ts";
import type { Pool } from "../../contract/plugin.ts";
import { poolsOf } from "../../engine/operator/pools.ts";
import type { Network } from "../conf.ts";
import { pluginConfig } from "../plugin-config.ts";
import { printLine } from "./print.ts";

/** A line for each pool that the network's configuration names. */
export function printPools(network: Network): void {
  for (const plugin of network.plugins) {
    const document = asRead(pluginConfig(network, plugin, {}));
    for (const pool of poolsOf(plugin.type, document)) printLine(describePool(pool));
  }
}

function describePool({ ranges, free, capacity }: Pool): string {
  if (free <= 0) return `addresses ${ranges}: pool full: 0 of ${capacity} free`;
  return `addresses ${ranges}: ${free > Number.MAX_SAFE_INTEGER ? "more than 2^53" : `${free} of ${capacity}`} free`;
}
