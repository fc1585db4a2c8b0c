/** `patchbay inspect`. */
import { inspect } from "../../engine/operator/inspect.ts";
import { attachmentTable } from "./attachment-table.ts";
import { attachmentsOf, show } from "./attachments.ts";
import type { Command } from "./command.ts";
import { runtimeOf, runtimeOptions } from "./network-call.ts";

export const inspectCommand: Command = {
  summary: "show what was made for attachments, beside what is there now",
  operands: "[NETWORK [CONTAINER]]",
  operandCount: [0, 2],
  needsRoot: true,
  options: {
    json: { help: "as JSON" },
    "plugin-path": runtimeOptions["plugin-path"]!,
    "cache-dir": runtimeOptions["cache-dir"]!,
  },
  notes: "Exit status 0 when everything is as it was made, 1 when something differs or a namespace is gone.\n",
  run(given) {
    const { pluginPath } = runtimeOf(given);
    const attachments = attachmentsOf(given).map((attachment) => inspect(attachment, pluginPath));
    return show(given, attachments, attachmentTable(attachments));
  },
};
