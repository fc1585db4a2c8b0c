/** `patchbay plan NETWORK [NETNS]`. */
import { distinct, errorText } from "../../../cni/error.ts";
import { withScratchNetns } from "../../../ffi/netns.ts";
import { warnOfUntaken } from "../../../runtime/capabilities.ts";
import { warnOfTaken } from "../../../runtime/caveats.ts";
import { warnOfOverlaps } from "../../../runtime/overlaps.ts";
import { planNetwork } from "../../../runtime/plan.ts";
import type { Command, GivenArguments } from "../command.ts";
import { attachmentArguments, capabilityOptions, givenNetwork, requestTo, runtimeOf } from "../network-arguments.ts";
import { nextSteps } from "../../answers/next-steps.ts";
import { printJson, printLine, printToStderr } from "../../../process/output.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";
import type { PlannedPlugin } from "../../../contract/summaries.ts";

export const planCommand: Command = {
  summary: "list what 'add' would make and why it would fail; change nothing",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  needsRoot: true,
  options: { json: { help: "print JSON" }, ...capabilityOptions, ...attachmentArguments.options },
  notes:
    `${attachmentArguments.notes}Names and addresses are examples: 'add' chooses its own. Without NETNS, an empty namespace is assumed.\n`,
  exitStatus: "1 when 'add' would fail.",
  examples: [
    { args: "first", what: "what an attachment to the network first consists of" },
    { args: "first web", what: "what is in the way in the namespace web" },
  ],
  run(given) {
    const { pluginPath } = runtimeOf(given), network = givenNetwork(given);
    warnOfMisspellings(network, pluginPath, true);
    warnOfOverlaps(network);
    const plan = (netnsPath: string) => {
      const request = requestTo(network, withNetns(given, netnsPath));
      warnOfUntaken([network], request.capabilityArgs);
      warnOfTaken(runtimeOf(given), network, request);
      return planNetwork(runtimeOf(given), network, request);
    };
    const netnsPath = given.operands[1];
    const planned = netnsPath === undefined ? withScratchNetns(plan) : plan(netnsPath);
    if (given.has("json")) {
      printJson(planned.map((plugin) => ({ ...plugin, obstacles: plugin.obstacles.map(errorText) })));
    } else planned.forEach(describe);
    const obstacles = distinct(planned.flatMap(({ obstacles }) => obstacles));
    for (const obstacle of obstacles) {
      const steps = nextSteps(obstacle, network.name, "plan");
      printToStderr([`patchbay plan: 'add' would fail: ${errorText(obstacle)}`, ...steps].join("\n  "));
    }
    for (const warning of new Set(planned.flatMap(({ warnings }) => warnings))) {
      printToStderr(`patchbay plan: ${warning}`);
    }
    return obstacles.length === 0 ? 0 : 1;
  },
};

function withNetns(given: GivenArguments, netnsPath: string): GivenArguments {
  return { ...given, operands: [given.operands[0]!, netnsPath] };
}

function describe({ type, resources }: PlannedPlugin<unknown>): void {
  printLine(type);
  const lines = resources?.map(({ what }) => what) ?? ["what a program of another make does"];
  for (const line of lines) printLine(`  ${line}`);
}
