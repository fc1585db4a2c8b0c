/** `patchbay inspect`. */
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import { inspect } from "../../../engine/operator/inspect.ts";
import type { InspectedAttachment } from "../../../contract/summaries.ts";
import type { Command } from "../command.ts";
import { inspectionArguments, selectedAttachments, showAttachments } from "../inspected-attachments.ts";
import { runtimeOf } from "../network-arguments.ts";
import { operandsOf } from "../shown-attachments.ts";

export const inspectCommand: Command = {
  summary: "compare what was made for attachments with what is there now",
  ...inspectionArguments,
  notes: `${inspectionArguments.notes}Each resource is "ok", "differs", or "unknown" when it cannot be looked at.\n`,
  exitStatus: "0 when everything is as it was made, 1 when something differs, or a namespace is gone or elsewhere.",
  examples: [
    { args: "--brief", what: "what is attached, and whether it is as it was made" },
    { args: "first web", what: "what was made for this attachment, and what is there now" },
  ],
  run(given) {
    const { pluginPath } = runtimeOf(given), view = new HostView();
    const attachments = selectedAttachments(given, "inspect").map((attachment) =>
      inspect(attachment, pluginPath, view)
    );
    return showAttachments(
      given,
      attachments.map((one) => {
        const operands = attachments.length === 1 ? operandsOf(one) : one.network;
        return one.state === "differs" && hasOwnDifference(one)
          ? { ...one, next: `'patchbay repair ${operands}' mends what it can` }
          : one;
      }),
    );
  },
};

/** What other programs do, `repair` does not change. */
function hasOwnDifference({ plugins }: InspectedAttachment): boolean {
  return plugins.some(({ resources }) => resources.some(({ state, isOfOthers }) => state !== "ok" && !isOfOthers));
}
