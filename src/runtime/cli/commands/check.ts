/** `patchbay check NETWORK CONTAINER`. */
import { checkNetwork } from "../../chain.ts";
import type { Command } from "../command.ts";
import { attachedArguments, attachedRequest } from "../attached-request.ts";
import { attachmentArguments, networkOf, requestOf, runtimeOf } from "../network-arguments.ts";

const summary = "say whether an attachment is still as it was made";

export const checkCommand: Command = {
  summary,
  ...attachedArguments,
  run(given) {
    const network = networkOf(given), { request, unknown } = attachedRequest(given);
    if (unknown !== undefined) throw new Error(unknown);
    checkNetwork(runtimeOf(given), network, request);
    return 0;
  },
};

export const cnitoolCheckCommand: Command = {
  summary,
  ...attachmentArguments,
  run(given) {
    checkNetwork(runtimeOf(given), networkOf(given), requestOf(given));
    return 0;
  },
};
