/** The attachments in the result cache, whoever made them, in the form that `inspect` and `repair` need. */
import { isObject, parseDocument } from "../cni/json.ts";
import type { CachedAttachment } from "../engine/operator/known-attachment.ts";
import { warn } from "../ffi/warn.ts";
import { errorText } from "../cni/error.ts";
import type { CacheRecord } from "./cache.ts";
import { joinArgs } from "./plugin-call.ts";
import { type Network, networkOfOnePlugin, parseNetwork } from "./conf/network.ts";
import { pluginConfig } from "./plugin-config.ts";

/** Leaves out records without a result: nobody can tell what such an attachment consists of. */
export function cachedAttachments(records: readonly CacheRecord[]): CachedAttachment[] {
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

/** Engines cache the list or, for a network of one plugin, that plugin's configuration. */
export function cachedNetwork({ config, network }: CacheRecord): Network {
  const document = parseDocument(config, "cached configuration");
  const isPlugin = isObject(document) && !("plugins" in document) && typeof document["type"] === "string";
  return isPlugin ? networkOfOnePlugin(document, network) : parseNetwork(config);
}
