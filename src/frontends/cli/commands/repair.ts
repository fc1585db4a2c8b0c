/** `patchbay repair`. */
import { errorText } from "../../../cni/error.ts";
import { repair, type RepairedAttachment } from "../../../engine/operator/repair.ts";
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import { withContainerLocked } from "../../../runtime/lock.ts";
import type { Command, GivenArguments } from "../command.ts";
import { inspectionArguments, selectedAttachments, showAttachments } from "../inspected-attachments.ts";
import { networkNames } from "../../../runtime/conf/directory.ts";
import { readCache } from "../../../runtime/cache.ts";
import { planNetwork } from "../../../runtime/plan.ts";
import { givenNetwork, runtimeOf } from "../network-arguments.ts";
import { nextSteps } from "../../answers/next-steps.ts";
import { isSaid, operandsOf } from "../shown-attachments.ts";

export const repairCommand: Command = {
  runsByItself: true,
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
    const repaired = selectedAttachments(given, "repair").map((attachment) =>
      withContainerLocked(runtime, attachment.containerId, () => repair(attachment, runtime.pluginPath, view))
    );
    const isOne = repaired.length === 1;
    return showAttachments(
      given,
      repaired.map((one) => {
        const { needsAdd: _, hasLink: __, ...shown } = one;
        return one.state === "differs" ? { ...shown, next: nextAfterRepair(one, given, isOne) } : shown;
      }),
    );
  },
};

/** Nobody is told to end what works where 'add' would fail. */
function nextAfterRepair(attachment: RepairedAttachment, given: GivenArguments, isOne: boolean): string {
  const { needsAdd } = attachment,
    operands = operandsOf(attachment),
    again = `'patchbay repair ${isOne ? operands : attachment.network}' again`;
  const obstacles = whyAddWouldFail(attachment, given);
  if (obstacles === undefined) {
    return needsAdd
      ? "its engine can make it anew: stop the container there, and start it"
      : `mend that, then ${again}`;
  }
  const [obstacle] = obstacles;
  if (obstacle !== undefined) {
    const text = errorText(obstacle);
    const resources = attachment.plugins.flatMap((plugin) => plugin.resources);
    const isTold = resources.some(({ reason }) => reason !== undefined && isSaid(text, [reason]));
    const why = isTold ? "" : `: ${text}`, steps = nextSteps(obstacle, attachment.network, "repair");
    return [`keep the attachment, because 'add' would fail now${why}`, ...steps, `then ${again}`].join("\n  ");
  }
  return needsAdd ? `'patchbay del ${operands}', and 'add' after it, make it anew` : `mend that, then ${again}`;
}

/** Undefined when the network has no file here, as podman's: its engine makes it anew. */
function whyAddWouldFail(attachment: RepairedAttachment, given: GivenArguments): unknown[] | undefined {
  const runtime = runtimeOf(given), { network: name, containerId, ifName, netnsPath, hasLink } = attachment;
  if (!networkNames(runtime.configDirectory).includes(name)) return undefined;
  const cached = readCache(runtime.cacheDirectory, { network: name, containerId, ifName });
  const { cniArgs = [], capabilityArgs = {} } = cached.state === "present" ? cached.record : {};
  try {
    const request = { containerId, ifName, netnsPath, cniArgs, capabilityArgs };
    return planNetwork(runtime, givenNetwork(given, name), request, { hasLink }).flatMap(({ obstacles }) =>
      obstacles
    );
  } catch (error) {
    return [error];
  }
}
