/** `patchbay inspect`. */
import { inspect } from "../../../engine/operator/inspect.ts";
import type { Command } from "../command.ts";
import { attachmentsOf, attachmentTable, inspectionArguments, showAttachments } from "../inspected-attachments.ts";
import { runtimeOf } from "../network-arguments.ts";

export const inspectCommand: Command = {
  summary: "compare what was made for attachments with what is there now",
  ...inspectionArguments,
  notes: "Exit status: 0 when everything is as it was made, 1 when something differs or a namespace is gone.\n",
  run(given) {
    const { pluginPath } = runtimeOf(given);
    const attachments = attachmentsOf(given).map((attachment) => inspect(attachment, pluginPath));
    return showAttachments(given, attachments, attachmentTable(attachments));
  },
};
