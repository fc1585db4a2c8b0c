/**
 * What is attached when Patchbay is uninstalled, and who removes it afterwards. The plugins that were there before can
 * remove links, addresses, leases and iptables rules, but not entries in our own nftables tables, and not what they know only
 * by a record of their own.
 */
import { listAllLedgers, unreadableLedgers } from "../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../engine/ledger/record.ts";
import { counted } from "../contract/counted.ts";
import { stateDirectory } from "../process/state-directory.ts";
import { loadKind } from "../resources/table.ts";
import { print, printLine } from "../process/output.ts";

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
  const attachments = new Map<string, Left[]>();
  for (const record of records) {
    const { network, containerId, ifName, plugin } = record.header;
    const left = attachments.getOrInsertComputed(
      `${ifName} of container ${containerId} in network ${network}`,
      () => [],
    );
    left.push(...leftOf(record));
    if (!willExist(plugin)) left.push({ what: `what ${plugin} made, as no other ${plugin} comes back` });
  }
  const lasting = [...attachments].filter(([, left]) => left.length > 0);
  const harmful = lasting.filter(([, left]) => left.some(({ isHarmless }) => !isHarmless));
  if (harmful.length > 0 && !force) {
    throw new UninstallRefused(
      `nothing was changed: ${harmful.length} of ${counted(attachments.size, "recorded attachment")} ` +
        `${harmful.length === 1 ? "has" : "have"} what no other plugin removes\n${linesOf(harmful)}` +
        `Delete these attachments first (stop the containers, or 'patchbay del' and 'patchbay gc'), or use --force to ` +
        "leave it behind.",
    );
  }
  const removed = attachments.size - harmful.length;
  if (removed > 0) {
    const stay = `${counted(removed, "attachment")} ${removed === 1 ? "stays" : "stay"}`;
    printLine(`${stay}; the plugins that come back remove what was made, with the addresses`);
  }
  if (lasting.length > 0) print(`nothing removes this before the next boot:\n${linesOf(lasting)}`);
  if (records.some(({ header }) => willExist(header.plugin)) && harmful.length > 0) {
    printLine("plugins that come back may fail to delete what has more than they know; deleting it again succeeds");
  }
  printLine(`their ledgers stay in ${stateDirectory()}, for when this program is installed again`);
}

/** What nobody removes before the next boot. */
interface Left {
  what: string;
  isHarmless?: boolean;
}

function linesOf(attachments: readonly (readonly [name: string, left: readonly Left[]])[]): string {
  const textOf = (left: readonly Left[]) => [...new Set(left.map(({ what }) => what))].join(", ");
  return attachments.map(([name, left]) => `  ${name}: ${textOf(left)}\n`).join("");
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
function leftOf({ entries }: LedgerRecord): Left[] {
  return entries.flatMap(({ kind: name, spec }) => {
    const kind = loadKind(name), table = kind?.ownTable?.(spec), isHarmless = kind?.isHarmlessWhenLeft ?? false;
    if (kind === undefined) return [{ what: `what a newer version of this program made (${name})` }];
    if (table !== undefined) return [{ what: `its entries in table ${table}`, isHarmless }];
    return kind.leftByOthers === undefined ? [] : [{ what: kind.leftByOthers, isHarmless }];
  });
}
