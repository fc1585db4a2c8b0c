/** `patchbay repair`. */
import { repair } from "../../engine/operator/repair.ts";
import { withContainerLocked } from "../lock.ts";
import { attachmentsOf, show } from "./attachments.ts";
import type { Command } from "./command.ts";
import { runtimeOf, runtimeOptions } from "./network-call.ts";

const { "plugin-path": pluginPath, "cache-dir": cacheDirectory } = runtimeOptions;

export const repairCommand: Command = {
  summary: "make again what attachments have lost, for example when another program flushed its rules",
  operands: "[NETWORK [CONTAINER]]",
  operandCount: [0, 2],
  needsRoot: true,
  options: {
    json: { help: "as JSON" },
    "plugin-path": pluginPath!,
    "cache-dir": cacheDirectory!,
  },
  notes: "Exit status 0 when everything is as it was made now, 1 when something could not be mended.\n",
  run(given) {
    const runtime = runtimeOf(given);
    const repaired = attachmentsOf(given).map((attachment) =>
      withContainerLocked(
        runtime.cacheDirectory,
        attachment.containerId,
        () => repair(attachment, runtime.pluginPath),
      )
    );
    return show(given, repaired);
  },
};
