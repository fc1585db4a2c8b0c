/** `patchbay status [NETWORK]`. */
import { errorText } from "../../../cni/error.ts";
import type { NetworkSummary, Pool } from "../../../contract/summaries.ts";
import { networkStatus } from "../../../runtime/chain.ts";
import type { Network } from "../../../runtime/conf/network.ts";
import { isFull, summarizeNetworks } from "../../../runtime/network-summary.ts";
import { isNamedButMissing } from "../../../runtime/paths.ts";
import type { Runtime } from "../../../runtime/plugin-call.ts";
import type { Command, GivenArguments } from "../command.ts";
import { noneIn, remarksOn } from "../network-remarks.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";
import { givenNetwork, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { nextSteps } from "../../answers/next-steps.ts";
import { printJson, printLine, printToStderr } from "../../../process/output.ts";
import { readable } from "../text-table.ts";

export const statusCommand: Command = {
  summary: "say whether containers can be attached to a network now, or to each",
  operands: "[NETWORK]",
  operandCount: [0, 1],
  needsRoot: true,
  options: { json: { help: "print JSON" }, ...runtimeOptions },
  notes:
    "The command prints how many addresses each pool of host-local has left, or that the network is ready. A full pool\n" +
    "is no failure of the plugin's STATUS, which engines ask, but of this command. It also tells of what 'networks' tells.\n",
  exitStatus: "1 when a network takes no attachments now, with the reason on stderr.",
  examples: [
    { args: "first", what: "whether the network first works, and how many addresses it has left" },
    { args: "", what: "the same of every network" },
  ],
  run(given, program) {
    const runtime = runtimeOf(given);
    if (program !== "patchbay") return statusOfCnitool(runtime, given);
    const isOne = given.operands.length === 1,
      found = summarizeNetworks(runtime, true, isOne ? chosen(given) : undefined);
    if (given.has("json")) printJson(isOne ? inJson(found[0]!) : found.map(inJson));
    for (const summary of found) {
      const { name, file, problems, pools } = summary, lines = pools.map(describePool);
      if (lines.length === 0 && problems.length === 0) lines.push("ready");
      if (!given.has("json")) { for (const line of lines) printLine(isOne ? line : `${name}: ${line}`); }
      const subject = isOne ? "" : name === undefined ? `${file}: ` : `network ${name}: `;
      for (const remark of remarksOn(summary)) printToStderr(`patchbay status: ${subject}${remark}`);
      for (const problem of problems) {
        printToStderr([`patchbay status: ${subject}${errorText(problem)}`, ...nextSteps(problem, name)].join("\n  "));
      }
    }
    if (found.length === 0) printToStderr(`patchbay status: ${noneIn(runtime.configDirectory).trimEnd()}`);
    if (isNamedButMissing(runtime.configDirectory)) return 1;
    return found.every(({ problems }) => problems.length === 0) ? 0 : 1;
  },
};

function chosen(given: GivenArguments): Network {
  const network = givenNetwork(given);
  warnOfMisspellings(network, runtimeOf(given).pluginPath, true);
  return network;
}

function inJson({ name, file, state, problems, pools, differences, warnings }: NetworkSummary<unknown>) {
  return { network: name ?? file, state, problems: problems.map(errorText), pools, differences, warnings };
}

function statusOfCnitool(runtime: Runtime, given: GivenArguments): number {
  if (given.operands.length === 0) throw new Error("requires at least 1 arg(s), only received 0");
  networkStatus(runtime, givenNetwork(given));
  return 0;
}

function describePool(pool: Pool): string {
  const { ranges, free, capacity } = pool;
  return `addresses ${ranges}: ${isFull(pool) ? "pool full: 0" : readable(free)} of ${readable(capacity)} free`;
}
