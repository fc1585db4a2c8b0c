/** `patchbay status NETWORK`. */
import { networkStatus } from "../chain.ts";
import type { Command } from "./command.ts";
import { networkOf, runtimeOf, runtimeOptions } from "./network-call.ts";

export const statusCommand: Command = {
  summary: "say whether a network can take attachments now",
  operands: "NETWORK [NETNS]",
  operandCount: [1, 2],
  options: runtimeOptions,
  run(given) {
    networkStatus(runtimeOf(given), networkOf(given));
    return 0;
  },
};
