/** `patchbay del NETWORK CONTAINER`. */
import { deleteNetwork } from "../../chain.ts";
import { deleteRecorded } from "../../container-networks.ts";
import { unconfiguredNetwork } from "../../gc.ts";
import type { AttachmentRequest } from "../../plugin-call.ts";
import { recordedNetwork } from "../../records.ts";
import type { Command, Given } from "../command.ts";
import { attachedArguments, attachedRequest } from "../attached-request.ts";
import {
  attachmentArguments,
  networkOrRecorded,
  requestOf,
  runtimeOf,
  tellUnconfigured,
  TO_TAKE,
} from "../network-arguments.ts";
import { printToStderr } from "../output.ts";

const summary = "delete an attachment; its namespace may be gone";

export const delCommand: Command = {
  printsAfterwards: true,
  summary,
  ...attachedArguments(TO_TAKE),
  run(given) {
    const { request, unknown, isBegun } = attachedRequest(given, true);
    return remove(given, request, () => {
      // Its plugins may know of it all the same.
      if (unknown !== undefined) printToStderr(`patchbay del: ${unknown}`);
      if (isBegun) printToStderr(`patchbay del: ${given.operands[1]} is container ${request.containerId}`);
    });
  },
};

export const cnitoolDelCommand: Command = {
  summary,
  ...attachmentArguments,
  run: (given) => remove(given, requestOf(given)),
};

/** `begin` runs when the network is found. */
function remove(given: Given, request: AttachmentRequest, begin = () => {}): number {
  const runtime = runtimeOf(given), key = { network: given.operands[0]!, ...request };
  // Another attachment's record shows that the network is no typing error.
  const recorded = () => recordedNetwork(runtime, key) ?? unconfiguredNetwork(runtime, key.network);
  const { network, isConfigured } = networkOrRecorded(given, key.network, recorded);
  if (!isConfigured) tellUnconfigured(given, key.network);
  begin();
  if (isConfigured) deleteNetwork(runtime, network, request);
  else deleteRecorded(runtime, { network, request });
  return 0;
}
