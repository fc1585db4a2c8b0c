/**
 * GC of a whole network: which of its attachments are stale, and their end.
 *
 * Attachments are known from two records: libcni's result cache, which engines share, and our ledgers, which know also
 * those that another engine keeps in a cache elsewhere.
 */
import { compareVersions } from "../cni/versions.ts";
import { collectFailures, throwJoined } from "../contract/failures.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { isNamespaceGone } from "../engine/operator/inspect.ts";
import { type KnownAttachment as Recorded, listAttachments } from "../engine/operator/known-attachment.ts";
import { listCache } from "./cache.ts";
import { listCachedAttachments } from "./cached-attachments.ts";
import { type AttachmentRequest, deleteUnlocked, findRunnable, type Runtime, wrapped } from "./chain.ts";
import type { Network } from "./conf.ts";
import { deleteFormer, formerNetwork } from "./former.ts";
import { withAllLocked } from "./lock.ts";

export interface KnownAttachment extends AttachmentRequest {
  readonly network: string;
  readonly isCached: boolean;
  /** What our ledgers have of it; none for what others made. */
  readonly recorded: Recorded;
}

export interface AttachmentName {
  readonly containerId: string;
  readonly ifName: string;
}

/** Which attachments stay: those named; those whose namespace is there; or those that the cache does not know. */
export type Staying = { valid: readonly AttachmentName[] } | "live" | "uncached";

/** Whether anything is known of the network by that name. */
export function isAttached(runtime: Runtime, network: string): boolean {
  return knownAttachments(runtime, network).length > 0;
}

export function staleAttachments(runtime: Runtime, network: Network, staying: Staying): KnownAttachment[] {
  const known = knownAttachments(runtime, network.name);
  if (staying === "live") return known.filter(isGone);
  if (staying === "uncached") return known.filter(({ isCached }) => isCached);
  const kept = new Set(staying.valid.map(nameOf));
  return known.filter((attachment) => !kept.has(nameOf(attachment)));
}

/**
 * Deletes what is stale, after `announce` was told all of it. Then, when the caller named what is valid, each plugin
 * does the same for what it knows; with "uncached" the plugins are asked without a list, as libcni does.
 */
export function collectGarbage(
  runtime: Runtime,
  network: Network,
  staying: Staying,
  announce: (stale: readonly KnownAttachment[]) => void = () => {},
): void {
  if (network.disableGC) return;
  withAllLocked(runtime.cacheDirectory, () => {
    const stale = staleAttachments(runtime, network, staying);
    announce(stale);
    const failures = collectFailures(stale, (attachment) => {
      try {
        const isFormer = network.plugins.length === 0;
        deleteUnlocked(runtime, isFormer ? formerNetwork(runtime, attachment) ?? network : network, attachment);
        deleteFormer(runtime, attachment);
      } catch (error) {
        const { containerId, ifName } = attachment;
        throw wrapped(`failed to delete stale attachment ${containerId} ${ifName}`, error);
      }
    });
    if (staying !== "live") failures.push(...askPlugins(runtime, network, staying));
    throwJoined(failures, "\n");
  });
}

/** Plugins of other makes are asked where the verb exists: from 1.1.0 on. Ours keep ledgers and leases in every version. */
function askPlugins(runtime: Runtime, network: Network, staying: Staying) {
  const validAttachments = typeof staying === "string"
    ? undefined
    : staying.valid.map(({ containerId, ifName }) => ({ containerID: containerId, ifname: ifName }));
  const hasVerb = compareVersions(network.cniVersion, "1.1.0") >= 0;
  return collectFailures(network.plugins, (plugin) => {
    try {
      if (!hasVerb && !("own" in findPlugin(plugin.type, runtime.pluginPath))) return;
      findRunnable(runtime, network, plugin)("GC", { validAttachments });
    } catch (error) {
      throw wrapped(`failed to GC plugin ${plugin.type}`, error);
    }
  });
}

function knownAttachments(runtime: Runtime, network: string): KnownAttachment[] {
  const all = listAttachments(listCachedAttachments(runtime.cacheDirectory));
  const ofNetwork = all.filter((attachment) => attachment.network === network);
  const ledgers = new Map(ofNetwork.map((attachment) => [nameOf(attachment), attachment]));
  const cached = listCache(runtime.cacheDirectory).filter((record) => record.network === network);
  const known: KnownAttachment[] = cached.map((record) => {
    const { containerId, ifName, netnsPath, cniArgs = [], capabilityArgs = {} } = record;
    const name = { network, containerId, ifName, netnsPath };
    const recorded = ledgers.get(nameOf(record)) ?? { ...name, ledgers: [] };
    ledgers.delete(nameOf(record));
    return { ...name, cniArgs, capabilityArgs, isCached: true, recorded };
  });
  for (const recorded of ledgers.values()) {
    const { containerId, ifName, netnsPath } = recorded;
    const name = { network, containerId, ifName, netnsPath };
    known.push({ ...name, cniArgs: [], capabilityArgs: {}, isCached: false, recorded });
  }
  return known;
}

export function isGone({ recorded }: KnownAttachment): boolean {
  return isNamespaceGone(recorded);
}

function nameOf({ containerId, ifName }: AttachmentName): string {
  return `${containerId}/${ifName}`;
}
