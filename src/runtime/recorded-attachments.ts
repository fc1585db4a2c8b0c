/**
 * The attachments that records name. There are two: libcni's result cache, which engines share, and our ledgers, which
 * also have those that another engine caches elsewhere.
 */
import { type KnownAttachment, listAttachments } from "../engine/operator/known-attachment.ts";
import { type CacheRecord, listCache } from "./cache.ts";
import { cachedAttachments } from "./cached-attachments.ts";
import type { AttachmentRequest, Runtime } from "./plugin-call.ts";

export interface RecordedAttachment extends AttachmentRequest {
  readonly network: string;
  readonly isCached: boolean;
  /** Without ledgers when other programs made the attachment. */
  readonly recorded: KnownAttachment;
}

export function attachmentsTo({ cacheDirectory }: Runtime, network: string): RecordedAttachment[] {
  const records = listCache(cacheDirectory).filter((record) => record.network === network);
  return inBoth(records, listAttachments(cachedAttachments(records)).filter((one) => one.network === network));
}

export function attachmentsOf({ cacheDirectory }: Runtime, containerId: string): RecordedAttachment[] {
  const records = listCache(cacheDirectory, containerId);
  return inBoth(records, listAttachments(cachedAttachments(records), containerId));
}

export function knownAttachments({ cacheDirectory }: Runtime): KnownAttachment[] {
  return listAttachments(cachedAttachments(listCache(cacheDirectory)));
}

function inBoth(records: readonly CacheRecord[], known: readonly KnownAttachment[]): RecordedAttachment[] {
  const uncached = new Map(known.map((attachment) => [nameOf(attachment), attachment]));
  const found: RecordedAttachment[] = records.map((record) => {
    const { network, containerId, ifName, netnsPath, cniArgs = [], capabilityArgs = {} } = record;
    const key = { network, containerId, ifName, netnsPath };
    const recorded = uncached.get(nameOf(record)) ?? { ...key, ledgers: [] };
    uncached.delete(nameOf(record));
    return { ...key, cniArgs, capabilityArgs, isCached: true, recorded };
  });
  for (const recorded of uncached.values()) {
    const { network, containerId, ifName, netnsPath } = recorded;
    const key = { network, containerId, ifName, netnsPath };
    found.push({ ...key, cniArgs: [], capabilityArgs: {}, isCached: false, recorded });
  }
  return found;
}

function nameOf({ network, containerId, ifName }: CacheRecord | KnownAttachment): string {
  return `${network}/${containerId}/${ifName}`;
}
