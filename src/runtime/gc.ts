/** GC of a whole network: finding its stale attachments and deleting them. */
import { collectFailures, throwJoined } from "../contract/failures.ts";
import { ownerText } from "../contract/owner.ts";
import type { LedgerRecord } from "../engine/ledger/record.ts";
import { HostView } from "../engine/ledger/whereabouts.ts";
import { isNamespaceGone, whereaboutsOf } from "../engine/operator/inspect.ts";
import { deleteRecordedUnlocked } from "./container-networks.ts";
import { prepareCall, type Runtime, verbOfNetwork, wrapped } from "./plugin-call.ts";
import type { Network } from "./conf/network.ts";
import { withAllLocked } from "./lock.ts";
import {
  attachmentsOfContainer,
  attachmentsToNetwork,
  networkWithoutPlugins,
  type RecordedAttachment,
  recordedNetwork,
} from "./records.ts";
import type { AttachmentName } from "../contract/summaries.ts";

/** Which attachments to keep: those named, those whose namespace exists, or those that the cache does not have. */
export type Keep = { valid: readonly AttachmentName[] } | "live" | "uncached";

/** For a network that is not configured; undefined when no record names it. */
export function unconfiguredNetwork(runtime: Runtime, name: string): Network | undefined {
  return attachmentsToNetwork(runtime, name).length > 0 ? networkWithoutPlugins(name) : undefined;
}

export function staleAttachments(runtime: Runtime, network: Network, keep: Keep): RecordedAttachment[] {
  const all = attachmentsToNetwork(runtime, network.name);
  if (keep === "live") {
    const view = new HostView();
    return all.filter(({ recorded }) => isNamespaceGone(recorded, view));
  }
  if (keep === "uncached") return all.filter(({ isCached }) => isCached);
  const valid = new Set(keep.valid.map((one) => ownerText({ ...one, network: network.name })));
  return all.filter((attachment) => !valid.has(ownerText(attachment)));
}

/** No record shows whether it is. One `view` serves many. */
export function mayBeGone({ recorded }: RecordedAttachment, view: HostView): boolean {
  return whereaboutsOf(recorded, view) === "unknown";
}

/**
 * Announces all stale attachments, then deletes them. Then the plugins collect their own garbage: with the list of valid
 * attachments, or without a list for "uncached", as libcni does. For "live" they are not called.
 */
export function collectGarbage(
  runtime: Runtime,
  network: Network,
  keep: Keep,
  announce: (stale: readonly RecordedAttachment[]) => void = () => {},
): void {
  if (network.disableGC) return;
  withAllLocked(runtime, () => {
    const stale = staleAttachments(runtime, network, keep);
    announce(stale);
    const remove = keep === "live" ? deleteGone : deleteStale;
    const failures = collectFailures(stale, (attachment) => remove(runtime, network, attachment));
    if (keep !== "live") failures.push(...callPlugins(runtime, network, keep));
    throwJoined(failures, "\n");
  });
}

/** `gone` is SessionOptions.gone. */
function deleteStale(
  runtime: Runtime,
  network: Network,
  attachment: RecordedAttachment,
  gone?: readonly LedgerRecord[],
): void {
  try {
    const isConfigured = network.plugins.length > 0;
    const addedTo = isConfigured ? network : recordedNetwork(runtime, attachment) ?? network;
    deleteRecordedUnlocked(runtime, { network: addedTo, request: attachment }, gone);
  } catch (error) {
    const { containerId, ifName } = attachment;
    throw wrapped(`failed to delete stale attachment ${containerId} ${ifName}`, error);
  }
}

/**
 * Deletes what `isNamespaceGone` has judged, and nothing of a container with the same id that was attached since, by whatever
 * runtime: its records are other ones. The path may lead to another container's namespace, so plugins get none.
 */
export function deleteGone(runtime: Runtime, network: Network, attachment: RecordedAttachment): void {
  const { containerId, ifName, recorded } = attachment;
  const now = attachmentsOfContainer(runtime, containerId).find((one) =>
    one.network === attachment.network && one.ifName === ifName
  );
  if (now === undefined) return;
  if (!Bun.deepEquals(now.recorded, recorded)) {
    throw new Error(`${ifName} of container ${containerId} stays: it is attached again`);
  }
  deleteStale(runtime, network, { ...attachment, netnsPath: "" }, recorded.ledgers);
}

function callPlugins(runtime: Runtime, network: Network, keep: Keep): unknown[] {
  const validAttachments = typeof keep === "string"
    ? undefined
    : keep.valid.map(({ containerId, ifName }) => ({ containerID: containerId, ifname: ifName }));
  return collectFailures(network.plugins, (plugin) => {
    try {
      if (!verbOfNetwork(runtime, network, plugin).hasVerb) return;
      prepareCall(runtime, network, plugin)("GC", { validAttachments });
    } catch (error) {
      throw wrapped(`failed to GC plugin ${plugin.type}`, error);
    }
  });
}
