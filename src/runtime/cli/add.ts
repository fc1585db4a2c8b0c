/** `patchbay add NETWORK NETNS`. */
import { errorText } from "../../cni/error.ts";
import { printResult } from "../../cni/result-versions.ts";
import { addNetwork, deleteNetwork } from "../chain.ts";
import type { Command } from "./command.ts";
import { attachmentNotes, attachmentOptions, networkOf, requestOf, runtimeOf } from "./network-call.ts";
import { complain, print } from "./print.ts";
import { tellSlips } from "./slips.ts";

export const addCommand: Command = {
  summary: "attach a network namespace to a network, and print the result",
  operands: "NETWORK NETNS",
  operandCount: [2, 2],
  needsRoot: true,
  options: attachmentOptions,
  notes: attachmentNotes,
  run(given, program) {
    const runtime = runtimeOf(given), network = networkOf(given), request = requestOf(given);
    if (program === "patchbay") tellSlips(network, runtime.pluginPath);
    const result = addNetwork(runtime, network, request);
    try {
      if (result !== undefined) print(printResult(result));
    } catch (error) {
      // Who cannot read the result does not know what to delete.
      complain(`the result cannot be written, so the attachment is taken back: ${errorText(error)}`);
      deleteNetwork(runtime, network, request);
      return 1;
    }
    return 0;
  },
};
