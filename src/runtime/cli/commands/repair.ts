/** `patchbay repair`. */
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import { repair } from "../../../engine/operator/repair.ts";
import { withContainerLocked } from "../../lock.ts";
import type { Command } from "../command.ts";
import { inspectionArguments, selectedAttachments, showAttachments } from "../inspected-attachments.ts";
import { runtimeOf } from "../network-arguments.ts";

export const repairCommand: Command = {
  printsAfterwards: true,
  summary: "restore what attachments have lost, for example when another program flushed its rules",
  ...inspectionArguments,
  notes:
    `${inspectionArguments.notes}What differs is "mended", or says why not. A link that is gone is not made again:\n` +
    "'patchbay del' and 'add' do that.\n",
  exitStatus: "0 when everything is now as it was made, 1 when something could not be repaired.",
  examples: [{ args: "", what: "after 'nft flush ruleset': make the rules of all attachments again" }],
  run(given) {
    const runtime = runtimeOf(given), view = new HostView();
    const repaired = selectedAttachments(given).map((attachment) =>
      withContainerLocked(
        runtime.cacheDirectory,
        attachment.containerId,
        () => repair(attachment, runtime.pluginPath, view),
      )
    );
    return showAttachments(given, repaired);
  },
};
