/** `patchbay add NETWORK NETNS`. */
import { errorText } from "../../../cni/error.ts";
import { printResult } from "../../../cni/result-versions.ts";
import { isCallerGone } from "../../../ffi/calls.ts";
import { addNetwork, deleteNetwork } from "../../chain.ts";
import type { Command } from "../command.ts";
import { attachmentArguments, networkOf, requestOf, runtimeOf } from "../network-arguments.ts";
import { print, printToStderr } from "../output.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";

export const addCommand: Command = {
  summary: "attach a network namespace to a network, and print the result",
  ...attachmentArguments,
  run(given, program) {
    const runtime = runtimeOf(given), network = networkOf(given), request = requestOf(given);
    if (program === "patchbay") warnOfMisspellings(network, runtime.pluginPath);
    const result = addNetwork(runtime, network, request);
    try {
      if (isCallerGone()) throw new Error("the caller is gone");
      if (result !== undefined) print(printResult(result));
    } catch (error) {
      // A caller without the result cannot delete the attachment.
      printToStderr(`the result cannot be written, so the attachment is taken back: ${errorText(error)}`);
      deleteNetwork(runtime, network, request);
      return 1;
    }
    return 0;
  },
};
