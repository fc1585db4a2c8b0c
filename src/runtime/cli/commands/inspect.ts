/** `patchbay inspect`. */
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import { inspect } from "../../../engine/operator/inspect.ts";
import { type Command, UsageError } from "../command.ts";
import {
  attachmentTable,
  briefTable,
  exitStatusFor,
  inspectionArguments,
  selectedAttachments,
  showAttachments,
} from "../inspected-attachments.ts";
import { runtimeOf } from "../network-arguments.ts";
import { print } from "../output.ts";

export const inspectCommand: Command = {
  summary: "compare what was made for attachments with what is there now",
  ...inspectionArguments,
  options: {
    brief: { help: "print one line for each attachment, those with differences first" },
    ...inspectionArguments.options,
  },
  notes: `${inspectionArguments.notes}Each resource is "ok", "differs", or "unknown" when it cannot be looked at.\n`,
  exitStatus: "0 when everything is as it was made, 1 when something differs, or a namespace is gone or elsewhere.",
  examples: [
    { args: "--brief", what: "what is attached, and whether it is as it was made" },
    { args: "first web", what: "what was made for this attachment, and what is there now" },
  ],
  run(given) {
    const { pluginPath } = runtimeOf(given), isBrief = given.has("brief"), view = new HostView();
    if (isBrief && given.has("json")) throw new UsageError("--brief and --json exclude each other");
    const attachments = selectedAttachments(given).map((attachment) => inspect(attachment, pluginPath, view));
    if (!isBrief) return showAttachments(given, attachments, attachmentTable(attachments));
    print(briefTable(attachments));
    return exitStatusFor(attachments);
  },
};
