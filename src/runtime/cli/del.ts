/** `patchbay del NETWORK NETNS`. */
import { deleteNetwork } from "../chain.ts";
import type { Command } from "./command.ts";
import { attachmentNotes, attachmentOptions, networkOf, requestOf, runtimeOf } from "./network-call.ts";

export const delCommand: Command = {
  summary: "undo an attachment; the namespace may be gone already",
  operands: "NETWORK NETNS",
  operandCount: [2, 2],
  needsRoot: true,
  options: attachmentOptions,
  notes: attachmentNotes,
  run(given) {
    deleteNetwork(runtimeOf(given), networkOf(given), requestOf(given));
    return 0;
  },
};
