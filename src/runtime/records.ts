/**
 * Attachments on record, from two sources: libcni's result cache, which engines share and which has the network's
 * configuration at the time of ADD, and our ledgers, which also have attachments that another engine caches elsewhere.
 *
 *     type                what it holds                                             where it comes from
 *     Owner               network, container and interface: the key of the others   every call and every record
 *     AttachmentRequest   what a verb gets: the namespace and the arguments, too    the caller
 *     CachedAttachment    what each plugin of the chain would get now               a record of the result cache
 *     KnownAttachment     the ledgers of its plugins, and its CachedAttachment      ledgers and result cache
 *     RecordedAttachment  the request that DEL repeats, and its KnownAttachment     ledgers and result cache
 *
 * Commands and the library show an attachment as AttachmentName, its container and interface, and InspectedAttachment,
 * what CHECK finds of it (contract/summaries.ts).
 */
import { errorText } from "../cni/error.ts";
import { isObject, parseDocument } from "../cni/json.ts";
import { CURRENT_VERSION } from "../cni/versions.ts";
import { type Owner, ownerText } from "../contract/owner.ts";
import { namesInArguments } from "../engine/operator/container-names.ts";
import { listLedgersOf } from "../engine/ledger/ledger.ts";
import { type CachedAttachment, type KnownAttachment, listAttachments } from "../engine/operator/known-attachment.ts";
import { warn } from "../process/warn.ts";
import { type CacheRecord, listCache, readCache } from "./cache.ts";
import { type Network, networkOfOnePlugin, parseNetwork } from "./conf/network.ts";
import { type AttachmentRequest, joinArgs, type Runtime } from "./plugin-call.ts";
import { pluginConfig } from "./plugin-config.ts";

/** The request is what the cache has of ADD's; without a record there, it has no arguments. */
export interface RecordedAttachment extends AttachmentRequest {
  readonly network: string;
  readonly isCached: boolean;
  /** Without ledgers when other programs made the attachment. */
  readonly recorded: KnownAttachment;
}

export function attachmentsToNetwork({ cacheDirectory }: Runtime, network: string): RecordedAttachment[] {
  const records = listCache(cacheDirectory).filter((record) => record.network === network);
  return merged(records, listAttachments(cachedAttachments(records)).filter((one) => one.network === network));
}

export function attachmentsOfContainer({ cacheDirectory }: Runtime, containerId: string): RecordedAttachment[] {
  const records = listCache(cacheDirectory, containerId);
  return merged(records, listAttachments(cachedAttachments(records), containerId));
}

/** Lists the attachments of all containers, or of one. */
export function knownAttachments({ cacheDirectory }: Runtime, containerId?: string): KnownAttachment[] {
  return listAttachments(cachedAttachments(listCache(cacheDirectory, containerId)), containerId);
}

function merged(records: readonly CacheRecord[], known: readonly KnownAttachment[]): RecordedAttachment[] {
  const remaining = new Map(known.map((attachment) => [ownerText(attachment), attachment]));
  const found: RecordedAttachment[] = records.map((record) => {
    const { network, containerId, ifName, netnsPath, cniArgs = [], capabilityArgs = {} } = record;
    const key = { network, containerId, ifName, netnsPath };
    const names = namesInArguments(joinArgs(cniArgs));
    const recorded = remaining.get(ownerText(record)) ?? { ...key, names, ledgers: [] };
    remaining.delete(ownerText(record));
    return { ...key, cniArgs, capabilityArgs, isCached: true, recorded };
  });
  for (const recorded of remaining.values()) {
    const { network, containerId, ifName, netnsPath } = recorded;
    const key = { network, containerId, ifName, netnsPath };
    found.push({ ...key, cniArgs: [], capabilityArgs: {}, isCached: false, recorded });
  }
  return found;
}

/**
 * The attachments in the result cache, whoever made them. Leaves out records without a result: nobody can tell what such
 * an attachment consists of.
 */
function cachedAttachments(records: readonly CacheRecord[]): CachedAttachment[] {
  return records.flatMap((record) => {
    const { network, containerId, ifName, netnsPath, cniArgs, capabilityArgs, result } = record;
    if (result === undefined) return [];
    try {
      const configured = cachedNetwork(record);
      const plugins = configured.plugins.map((plugin) => ({
        type: plugin.type,
        document: pluginConfig(configured, plugin, { prevResult: result, capabilityArgs }),
      }));
      return [{ network, containerId, ifName, netnsPath, cniArgs: joinArgs(cniArgs ?? []), plugins }];
    } catch (error) {
      warn(`the cached configuration of ${ifName} of container ${containerId} cannot be read: ${errorText(error)}`);
      return [];
    }
  });
}

/** The network as it was when the attachment was added; undefined when neither record has the attachment. */
export function recordedNetwork(runtime: Runtime, key: Owner): Network | undefined {
  const cached = readCache(runtime.cacheDirectory, key);
  if (cached.state === "present") return readableNetwork(cached.record);
  return listLedgersOf(key).length > 0 ? networkWithoutPlugins(key.network) : undefined;
}

/** Stands for a network of which only ledgers are left. */
export function networkWithoutPlugins(name: string): Network {
  const flags = { disableCheck: false, disableGC: false, loadOnlyInlinedPlugins: false };
  return { name, cniVersion: CURRENT_VERSION, plugins: [], source: "", ...flags };
}

function readableNetwork(record: CacheRecord): Network {
  try {
    return cachedNetwork(record);
  } catch {
    return networkWithoutPlugins(record.network);
  }
}

/** Engines cache the list or, for a network of one plugin, that plugin's configuration. */
function cachedNetwork({ config, network }: CacheRecord): Network {
  const document = parseDocument(config, "cached configuration");
  const isPlugin = isObject(document) && !("plugins" in document) && typeof document["type"] === "string";
  return isPlugin ? networkOfOnePlugin(document, network) : parseNetwork(config);
}
