/**
 * What is attached when Patchbay is uninstalled, and who removes it afterwards. The plugins that were there before can
 * remove links, addresses, leases and iptables rules, but not entries in our own nftables tables, and not what they know only
 * by a record of their own.
 */
import { listAllLedgers, unreadableLedgers } from "../../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../../engine/ledger/record.ts";
import { counted } from "../../contract/counted.ts";
import { stateDirectory } from "../../engine/state-directory.ts";
import { loadKind } from "../../resources/table.ts";
import { printLine } from "./output.ts";

/** Something is attached that nobody would remove. */
export class UninstallRefused extends Error {}

/**
 * Prints what stays attached. Refuses when no other plugin would remove part of it, unless `force`. `willExist`: whether
 * there will be a plugin of that name.
 */
export function checkUninstall(willExist: (plugin: string) => boolean, force: boolean): void {
  requireReadable(force);
  const records = listAllLedgers();
  if (records.length === 0) return;
  const attachments = new Map<string, Set<string>>();
  for (const record of records) {
    const { network, containerId, ifName, plugin } = record.header;
    const orphans = attachments.getOrInsertComputed(
      `${ifName} of container ${containerId} in network ${network}`,
      () => new Set(),
    );
    for (const what of leftOf(record)) orphans.add(what);
    if (!willExist(plugin)) orphans.add(`what ${plugin} made, as no other ${plugin} comes back`);
  }
  const withOrphans = [...attachments].filter(([, orphans]) => orphans.size > 0);
  const lines = withOrphans.map(([name, orphans]) => `  ${name}: ${[...orphans].join(", ")}`);
  if (withOrphans.length > 0 && !force) {
    throw new UninstallRefused(
      `nothing was changed: ${withOrphans.length} of ${attachments.size} attachments have what no other plugin ` +
        `removes\n${lines.join("\n")}\n` +
        `Delete these attachments first (stop the containers, or 'patchbay del' and 'patchbay gc'), or use --force to ` +
        "leave it behind.",
    );
  }
  if (records.some(({ header }) => willExist(header.plugin))) {
    const stay = `${counted(attachments.size, "attachment")} ${attachments.size === 1 ? "stays" : "stay"}`;
    printLine(`${stay}; the plugins that come back remove what was made, with the addresses`);
  }
  if (withOrphans.length > 0) printLine(`nothing removes this before the next boot:\n${lines.join("\n")}`);
  printLine(`their ledgers stay in ${stateDirectory()}, for when this program is installed again`);
}

function requireReadable(force: boolean): void {
  const unreadable = unreadableLedgers();
  if (unreadable.length === 0 || force) return;
  throw new UninstallRefused(
    `nothing was changed: what is attached is not known, because this cannot be read or trusted:\n` +
      `${unreadable.map((path) => `  ${path}\n`).join("")}` +
      "Mend or remove it first, or use --force to leave behind what it records.",
  );
}

/** What no plugin but ours removes. */
function leftOf({ entries }: LedgerRecord): string[] {
  return entries.flatMap(({ kind: name, spec }) => {
    const kind = loadKind(name), table = kind?.ownTable?.(spec);
    if (kind === undefined) return [`what a newer version of this program made (${name})`];
    if (table !== undefined) return [`its entries in table ${table}`];
    return kind.leftByOthers === undefined ? [] : [kind.leftByOthers];
  });
}
