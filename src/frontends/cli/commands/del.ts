/** `patchbay del NETWORK CONTAINER`. */
import { deleteNetwork } from "../../../runtime/chain.ts";
import { networkNames } from "../../../runtime/conf/directory.ts";
import { UnknownNetworkError } from "../../../runtime/conf/load.ts";
import { deleteRecorded } from "../../../runtime/container-networks.ts";
import { unconfiguredNetwork } from "../../../runtime/gc.ts";
import type { AttachmentRequest } from "../../../runtime/plugin-call.ts";
import { knownAttachments, recordedNetwork } from "../../../runtime/records.ts";
import { closestName } from "../../../cni/spelling.ts";
import type { Command, GivenArguments } from "../command.ts";
import { attachedArguments, attachedRequest } from "../attached-request.ts";
import {
  attachmentArguments,
  DIGITS_TO_REMOVE,
  networkOrRecorded,
  requestOf,
  runtimeOf,
  tellUnconfigured,
} from "../network-arguments.ts";
import { isNamedButMissing } from "../../../runtime/paths.ts";
import { printToStderr } from "../../../process/output.ts";

const summary = "delete an attachment; its namespace may be gone";

export const delCommand: Command = {
  printsAfterwards: true,
  summary,
  ...attachedArguments(DIGITS_TO_REMOVE),
  exitStatus: "0 when the attachment is not there, also when it never was; 1 when another one seems to be meant.\n" +
    "With --ifname (or $CNI_IFNAME) that interface is meant: 0, also when the container has others.",
  examples: [
    { args: "first web", what: "detach the namespace web from the network first" },
    {
      args: "first 3f0c9a51b2d7",
      what: "detach the container with the ID that begins so; its namespace may be gone",
    },
  ],
  run(given) {
    const { request, unknown, isBegun } = attachedRequest(given, true);
    try {
      remove(given, request, () => {
        // Its plugins may know of it all the same.
        if (unknown !== undefined) printToStderr(`patchbay del: ${unknown.text}`);
        if (isBegun) printToStderr(`patchbay del: ${given.operands[1]} is container ${request.containerId}`);
      });
    } catch (error) {
      if (!(error instanceof UnknownNetworkError) || isNetworkMisnamed(given)) throw error;
      printToStderr(`patchbay del: ${error.message}, and nothing is recorded of it: there is nothing to delete`);
    }
    return unknown?.isMisnamed ? 1 : 0;
  },
};

/** Rather than deleted together with its file: DEL of what is gone succeeds. */
function isNetworkMisnamed(given: GivenArguments): boolean {
  const runtime = runtimeOf(given), directory = runtime.configDirectory, [name] = given.operands;
  if (isNamedButMissing(directory)) return true;
  const recorded = knownAttachments(runtime).map(({ network }) => network);
  return closestName(name!, [...networkNames(directory), ...recorded]) !== undefined;
}

export const cnitoolDelCommand: Command = {
  summary,
  ...attachmentArguments,
  run(given) {
    remove(given, requestOf(given));
    return 0;
  },
};

/** `begin` runs when the network is found. */
function remove(given: GivenArguments, request: AttachmentRequest, begin = () => {}): void {
  const runtime = runtimeOf(given), key = { network: given.operands[0]!, ...request };
  // Another attachment's record shows that the network is no typing error.
  const recorded = () => recordedNetwork(runtime, key) ?? unconfiguredNetwork(runtime, key.network);
  const { network, isConfigured } = networkOrRecorded(given, key.network, recorded);
  if (!isConfigured) tellUnconfigured(given, key.network);
  begin();
  if (isConfigured) deleteNetwork(runtime, network, request);
  else deleteRecorded(runtime, { network, request });
}
