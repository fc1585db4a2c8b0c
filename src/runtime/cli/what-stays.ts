/**
 * What is attached when Patchbay is uninstalled, and who removes it then: the plugins that come back know links,
 * addresses, leases and the rules of iptables, but not our own tables.
 */
import { type LedgerRecord, listAllLedgers } from "../../engine/ledger/ledger.ts";
import { stateDirectory } from "../../engine/state-directory.ts";
import { loadKind } from "../../resources/table.ts";
import { printLine } from "./print.ts";

/**
 * `comesBack` tells whether a plugin of that name will be there. Throws where something would be left that nobody
 * removes, unless `force`.
 */
export function tellWhatStays(comesBack: (plugin: string) => boolean, force: boolean): void {
  const records = listAllLedgers();
  if (records.length === 0) return;
  const attachments = new Map<string, Set<string>>();
  for (const record of records) {
    const { network, containerId, ifName, plugin } = record.header;
    const left = attachments.getOrInsertComputed(
      `${ifName} of container ${containerId} in network ${network}`,
      () => new Set(),
    );
    for (const table of tablesOf(record)) left.add(`its entries in table ${table}`);
    if (!comesBack(plugin)) left.add(`what ${plugin} made, as no other ${plugin} comes back`);
  }
  const stays = [...attachments].filter(([, left]) => left.size > 0);
  const lines = stays.map(([name, left]) => `  ${name}: ${[...left].join(", ")}`);
  if (stays.length > 0 && !force) {
    throw new Error(
      `nothing was changed: ${stays.length} of ${attachments.size} attachments have what no other plugin removes\n` +
        `${lines.join("\n")}\n` +
        `Delete these attachments first (stop the containers, or 'patchbay del' and 'patchbay gc'), or leave that behind ` +
        "with --force.",
    );
  }
  printLine(`${attachments.size} attachments stay; the plugins that come back remove them, with their addresses`);
  if (stays.length > 0) printLine(`what nobody will remove before the next boot:\n${lines.join("\n")}`);
  printLine(`their ledgers stay in ${stateDirectory()}, for when this program is installed again`);
}

function tablesOf({ entries }: LedgerRecord): string[] {
  return entries.map(({ kind, spec }) => loadKind(kind)?.ownTable?.(spec)).filter((table) => table !== undefined);
}
