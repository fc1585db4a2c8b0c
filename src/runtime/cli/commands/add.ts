/** `patchbay add NETWORK NETNS`. */
import { printResult } from "../../../cni/result-versions.ts";
import { addAnswered } from "../answered-add.ts";
import type { Command } from "../command.ts";
import { attachmentArguments, networkOf, requestOf, runtimeOf } from "../network-arguments.ts";
import { print } from "../output.ts";
import { warnOfMisspellings } from "../misspelling-warnings.ts";

export const addCommand: Command = {
  summary: "attach a network namespace to a network, and print the result",
  ...attachmentArguments,
  run(given, program) {
    const runtime = runtimeOf(given), network = networkOf(given), request = requestOf(given);
    if (program === "patchbay") warnOfMisspellings(network, runtime.pluginPath);
    return addAnswered(runtime, network, request, (result) => {
      if (result !== undefined) print(printResult(result));
    });
  },
};
