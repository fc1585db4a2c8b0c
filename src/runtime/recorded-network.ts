/**
 * Attachments whose network has changed or is no longer configured. The result cache has the network's configuration at
 * the time of ADD; ledgers have what our plugins made.
 */
import { listLedgersOf } from "../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../engine/ledger/record.ts";
import { openSession, runVerb } from "../engine/run.ts";
import { exists } from "../ffi/files.ts";
import { whileDirectoryLocked } from "../ffi/lock.ts";
import { loadRecorded } from "../plugins/table.ts";
import { type AttachmentKey, type CacheRecord, readCache } from "./cache.ts";
import { cachedNetwork } from "./cached-attachments.ts";
import type { Network } from "./conf/network.ts";
import type { Runtime } from "./plugin-call.ts";

/** The network as it was when the attachment was added; undefined when neither record has the attachment. */
export function recordedNetwork(runtime: Runtime, key: AttachmentKey): Network | undefined {
  const cached = readCache(runtime.cacheDirectory, key);
  if (cached.state === "present") return readableNetwork(cached.record);
  return ledgersOf(key).length > 0 ? networkWithoutPlugins(key.network) : undefined;
}

/** Stands for a network of which only ledgers are left. */
export function networkWithoutPlugins(name: string): Network {
  const flags = { disableCheck: false, disableGC: false, loadOnlyInlinedPlugins: false };
  return { name, cniVersion: "1.1.0", plugins: [], source: "", ...flags };
}

/**
 * DEL of every plugin of ours that still has a ledger: the network's configuration no longer names it. `gone` is
 * SessionOptions.gone.
 */
export function deleteByLedgers({ pluginPath }: Runtime, key: AttachmentKey, gone?: readonly LedgerRecord[]): void {
  for (const { header } of ledgersOf(key).toReversed()) {
    const plugin = loadRecorded(header.plugin);
    if (plugin === undefined) continue;
    const netnsPath = gone === undefined ? header.netnsPath : "";
    const remove = () =>
      void runVerb(plugin, { ...header, netnsPath, command: "DEL", path: pluginPath }, openSession({ gone }));
    const directory = plugin.lockedDirectory?.(JSON.parse(header.stdin));
    if (directory === undefined || !exists(directory)) remove();
    else whileDirectoryLocked(directory, remove);
  }
}

function ledgersOf({ network, containerId, ifName }: AttachmentKey) {
  return listLedgersOf({ network, containerId, ifName });
}

function readableNetwork(record: CacheRecord): Network {
  try {
    return cachedNetwork(record);
  } catch {
    return networkWithoutPlugins(record.network);
  }
}
