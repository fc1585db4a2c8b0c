/** `patchbay check NETWORK CONTAINER`. */
import { errorText } from "../../../cni/error.ts";
import { collectFailures } from "../../../contract/failures.ts";
import { checkNetwork } from "../../chain.ts";
import type { Command } from "../command.ts";
import { attachedArguments, attachedRequest } from "../attached-request.ts";
import { attachmentArguments, networkOf, requestOf, runtimeOf, TO_LOOK } from "../network-arguments.ts";
import { printLine } from "../output.ts";

const summary = "say whether an attachment is still as it was made";

export const checkCommand: Command = {
  summary,
  ...attachedArguments(TO_LOOK),
  exitStatus: "1 when something differs, with the difference on stderr, or when the attachment is not known.",
  examples: [{ args: "first web", what: "whether the namespace web is still attached as it was" }],
  options: { json: { help: "print JSON" }, ...attachmentArguments.options },
  run(given) {
    const network = networkOf(given), { request, unknown } = attachedRequest(given);
    const [failure] = collectFailures([request], () => {
      if (unknown !== undefined) throw new Error(unknown.text);
      checkNetwork(runtimeOf(given), network, request);
    });
    if (given.has("json")) {
      const { containerId, ifName, netnsPath } = request,
        problems = failure === undefined ? [] : [errorText(failure)];
      printLine(JSON.stringify({ network: network.name, containerId, ifName, netnsPath, problems }, null, 2));
    }
    if (failure !== undefined) throw failure;
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
