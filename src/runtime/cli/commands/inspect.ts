/** `patchbay inspect`. */
import { inspect } from "../../../engine/operator/inspect.ts";
import type { Command } from "../command.ts";
import { attachmentsOf, attachmentTable, showAttachments } from "../inspected-attachments.ts";
import { runtimeOf, runtimeOptions } from "../network-arguments.ts";

export const inspectCommand: Command = {
  summary: "compare what was made for attachments with what is there now",
  operands: "[NETWORK [CONTAINER]]",
  operandCount: [0, 2],
  needsRoot: true,
  options: {
    json: { help: "print JSON" },
    "plugin-path": runtimeOptions["plugin-path"]!,
    "cache-dir": runtimeOptions["cache-dir"]!,
  },
  notes: "Exit status: 0 when everything is as it was made, 1 when something differs or a namespace is gone.\n",
  run(given) {
    const { pluginPath } = runtimeOf(given);
    const attachments = attachmentsOf(given).map((attachment) => inspect(attachment, pluginPath));
    return showAttachments(given, attachments, attachmentTable(attachments));
  },
};
