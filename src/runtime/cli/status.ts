/** `patchbay status NETWORK`. */
import { networkStatus } from "../chain.ts";
import type { Command } from "./command.ts";
import { networkOf, runtimeOf, runtimeOptions } from "./network-call.ts";
import { printPools } from "./pools.ts";
import { tellSlips } from "./slips.ts";

export const statusCommand: Command = {
  summary: "say whether a network can take attachments now",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  needsRoot: true,
  options: runtimeOptions,
  notes:
    "Of addresses that host-local leases it tells how many are free. A pool that is full fails ADD, not STATUS.\n",
  run(given, program) {
    const runtime = runtimeOf(given), network = networkOf(given), isOwn = program === "patchbay";
    if (isOwn) tellSlips(network, runtime.pluginPath);
    try {
      networkStatus(runtime, network);
    } finally {
      if (isOwn) printPools(network);
    }
    return 0;
  },
};
