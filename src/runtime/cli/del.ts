/** `patchbay del NETWORK NETNS`. */
import { deleteNetwork } from "../chain.ts";
import type { Command } from "./command.ts";
import { attachmentNotes, attachmentOptions, networkOrFormer, requestOf, runtimeOf } from "./network-call.ts";

export const delCommand: Command = {
  summary: "undo an attachment; the namespace may be gone already",
  operands: "NETWORK NETNS",
  operandCount: [2, 2],
  needsRoot: true,
  options: attachmentOptions,
  notes: attachmentNotes,
  run(given) {
    const runtime = runtimeOf(given);
    const key = () => ({ network: given.operands[0]!, ...requestOf(given) });
    const former = () => require("../former.ts") as typeof import("../former.ts");
    let isFormer = false;
    const network = networkOrFormer(given, () => {
      isFormer = true;
      return former().formerNetwork(runtime, key());
    });
    deleteNetwork(runtime, network, requestOf(given));
    if (isFormer) former().deleteFormer(runtime, key());
    return 0;
  },
};
