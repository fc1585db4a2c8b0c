/** `patchbay status NETWORK`. */
import { errorText } from "../../../cni/error.ts";
import { collectFailures } from "../../../contract/failures.ts";
import { networkStatus } from "../../chain.ts";
import { poolsOfNetwork } from "../../network-summary.ts";
import type { Command } from "../command.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";
import { networkOf, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { printLine } from "../output.ts";
import { readable } from "../text-table.ts";
import type { Pool } from "../../../contract/shown.ts";

export const statusCommand: Command = {
  summary: "say whether containers can be attached to a network now",
  operands: "NETWORK",
  operandCount: [1, 1],
  needsRoot: true,
  options: { json: { help: "print JSON" }, ...runtimeOptions },
  notes:
    "The command prints how many addresses each pool of host-local has left. A full pool fails ADD, not STATUS.\n",
  exitStatus: "1 when the network takes no attachments now, with the reason on stderr.",
  examples: [{ args: "first", what: "whether the network first works, and how many addresses it has left" }],
  run(given, program) {
    const runtime = runtimeOf(given), network = networkOf(given), isOwn = program === "patchbay";
    if (isOwn) warnOfMisspellings(network, runtime.pluginPath);
    const [failure] = collectFailures([network], () => networkStatus(runtime, network));
    if (given.has("json")) {
      const problems = failure === undefined ? [] : [errorText(failure)];
      printLine(JSON.stringify({ network: network.name, problems, pools: poolsOfNetwork(network) }, null, 2));
    } else if (isOwn) {
      for (const pool of poolsOfNetwork(network)) printLine(describePool(pool));
    }
    if (failure !== undefined) throw failure;
    return 0;
  },
};

function describePool({ ranges, free, capacity }: Pool): string {
  return `addresses ${ranges}: ${free <= 0 ? "pool full: 0" : readable(free)} of ${readable(capacity)} free`;
}
