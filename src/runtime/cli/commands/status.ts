/** `patchbay status NETWORK`. */
import { asRead } from "../../../cni/json.ts";
import type { Pool } from "../../../contract/plugin.ts";
import { poolsOf } from "../../../engine/operator/pools.ts";
import { networkStatus } from "../../chain.ts";
import type { Network } from "../../conf/network.ts";
import { pluginConfig } from "../../plugin-config.ts";
import type { Command } from "../command.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";
import { networkOf, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { printLine } from "../output.ts";

export const statusCommand: Command = {
  summary: "say whether containers can be attached to a network now",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  needsRoot: true,
  options: runtimeOptions,
  notes: "Prints how many addresses each pool of host-local has left. A full pool fails ADD, not STATUS.\n",
  run(given, program) {
    const runtime = runtimeOf(given), network = networkOf(given), isOwn = program === "patchbay";
    if (isOwn) warnOfMisspellings(network, runtime.pluginPath);
    try {
      networkStatus(runtime, network);
    } finally {
      if (isOwn) printPools(network);
    }
    return 0;
  },
};

/** A line for each pool in the network's configuration. */
function printPools(network: Network): void {
  for (const plugin of network.plugins) {
    const document = asRead(pluginConfig(network, plugin, {}));
    for (const pool of poolsOf(plugin.type, document)) printLine(describePool(pool));
  }
}

function describePool({ ranges, free, capacity }: Pool): string {
  if (free <= 0) return `addresses ${ranges}: pool full: 0 of ${capacity} free`;
  return `addresses ${ranges}: ${free > Number.MAX_SAFE_INTEGER ? "more than 2^53" : `${free} of ${capacity}`} free`;
}
