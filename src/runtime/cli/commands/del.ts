/** `patchbay del NETWORK NETNS`. */
import { deleteNetwork } from "../../chain.ts";
import { deleteByLedgers, recordedNetwork } from "../../recorded-network.ts";
import type { Command } from "../command.ts";
import { attachmentArguments, networkOrRecorded, requestOf, runtimeOf } from "../network-arguments.ts";

export const delCommand: Command = {
  summary: "delete an attachment; its namespace may be gone",
  ...attachmentArguments,
  run(given) {
    const runtime = runtimeOf(given);
    const key = () => ({ network: given.operands[0]!, ...requestOf(given) });
    let isConfigured = true;
    const network = networkOrRecorded(given, () => {
      isConfigured = false;
      return recordedNetwork(runtime, key());
    });
    deleteNetwork(runtime, network, requestOf(given));
    if (!isConfigured) deleteByLedgers(runtime, key());
    return 0;
  },
};
