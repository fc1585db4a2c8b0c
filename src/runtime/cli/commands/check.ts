/** `patchbay check NETWORK NETNS`. */
import { checkNetwork } from "../../chain.ts";
import type { Command } from "../command.ts";
import { attachmentArguments, networkOf, requestOf, runtimeOf } from "../network-arguments.ts";

export const checkCommand: Command = {
  summary: "say whether an attachment is still as it was made",
  ...attachmentArguments,
  run(given) {
    checkNetwork(runtimeOf(given), networkOf(given), requestOf(given));
    return 0;
  },
};
