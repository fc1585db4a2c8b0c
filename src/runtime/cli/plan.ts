/** `patchbay plan NETWORK NETNS`. */
import { planNetwork } from "../chain.ts";
import type { Command } from "./command.ts";
import { attachmentNotes, attachmentOptions, networkOf, requestOf, runtimeOf } from "./network-call.ts";
import { printLine } from "./print.ts";
import { tellSlips } from "./slips.ts";

export const planCommand: Command = {
  summary: "list what an attachment would consist of, and make nothing",
  operands: "NETWORK NETNS",
  operandCount: [2, 2],
  options: { json: { help: "as JSON" }, ...attachmentOptions },
  notes: `${attachmentNotes}Names and addresses are examples: 'add' chooses anew.\n`,
  run(given) {
    const runtime = runtimeOf(given), network = networkOf(given);
    tellSlips(network, runtime.pluginPath);
    const plan = planNetwork(runtime, network, requestOf(given));
    if (given.has("json")) {
      printLine(JSON.stringify(plan, null, 2));
      return 0;
    }
    for (const { type, resources } of plan) {
      printLine(type);
      const lines = resources?.map(({ what }) => what) ?? ["what a program of another make does"];
      for (const line of lines) printLine(`  ${line}`);
    }
    return 0;
  },
};
