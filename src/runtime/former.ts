/**
 * Attachments whose network has changed since, or is not configured any more: the result cache has the configuration of
 * then, and ledgers what plugins of ours made.
 */
import { listLedgersOf } from "../engine/ledger/ledger.ts";
import { runVerb } from "../engine/run.ts";
import { loadPlugin } from "../plugins/table.ts";
import { type AttachmentKey, type Cached, readCache } from "./cache.ts";
import type { Runtime } from "./chain.ts";
import { cachedNetwork } from "./cached-attachments.ts";
import type { Network } from "./conf.ts";

/** The network as it was when the attachment was added; undefined for one that nobody knows. */
export function formerNetwork(runtime: Runtime, key: AttachmentKey): Network | undefined {
  const cached = readCache(runtime.cacheDirectory, key);
  if (cached.state === "present") return networkIn(cached);
  return ledgersOf(key).length > 0 ? emptyNetwork(key.network) : undefined;
}

/** A network that has no configuration, for attachments that only ledgers tell of. */
export function emptyNetwork(name: string): Network {
  const flags = { disableCheck: false, disableGC: false, loadOnlyInlinedPlugins: false };
  return { name, cniVersion: "1.1.0", plugins: [], source: "", ...flags };
}

/** What plugins of ours made that the network's configuration does not name any more: their ledgers are still there. */
export function deleteFormer({ pluginPath }: Runtime, key: AttachmentKey): void {
  for (const { header } of ledgersOf(key).toReversed()) {
    const plugin = loadPlugin(header.plugin);
    if (plugin !== undefined) runVerb(plugin, { ...header, command: "DEL", path: pluginPath });
  }
}

function ledgersOf({ network, containerId, ifName }: AttachmentKey) {
  return listLedgersOf({ network, containerId, ifName });
}

function networkIn({ record }: Cached & { state: "present" }): Network {
  try {
    return cachedNetwork(record);
  } catch {
    return emptyNetwork(record.network);
  }
}
