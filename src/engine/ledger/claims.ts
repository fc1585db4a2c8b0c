/** What the ledgers of other attachments claim: the same link, or a thing without an owner. */
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import { identify, O_APPEND, O_WRONLY, whileOpen, writeAll } from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { openExistingState } from "../../process/state-file.ts";
import { listAllLedgers } from "./ledger.ts";
import { startOfName } from "./paths.ts";
import type { LedgerRecord } from "./record.ts";
import { isSameOwner, type Owner } from "../../contract/owner.ts";
import { warn } from "../../process/warn.ts";

// Most containers are not gone, and ADD claims nothing.
const lazily = () => require("./whereabouts.ts") as typeof import("./whereabouts.ts");

/** The ledgers of the same interface of the same container in other networks. */
export function ledgersOfSameInterface({ network, containerId, ifName }: Owner): LedgerRecord[] {
  const rivals: LedgerRecord[] = [];
  for (const record of listAllLedgers(startOfName({ containerId, ifName }))) {
    const { header } = record;
    if (header.containerId === containerId && header.ifName === ifName && header.network !== network) {
      rivals.push(record);
    }
  }
  return rivals;
}

/** Whether the interface of that name in the namespace with that cookie belongs to another container. */
export function isAnotherContainers({ containerId, ifName }: Owner, netns: string): boolean {
  return listAllLedgers().some(({ header }) =>
    header.netns === netns && header.ifName === ifName && header.containerId !== containerId
  );
}

/** The specifications of a kind that the ledgers of other attachments contain and have not given up. */
export function recordedByOthers(kind: string, owner: Owner): unknown[] {
  return specsOf(kind, recordsOfOthers(owner));
}

/**
 * Like `recordedByOthers`, for removing things without an owner. First writes `givenUp` to our own ledger, so two
 * concurrent DELs cannot both leave the thing to each other. A container whose namespace is gone claims nothing: its
 * ledger may never see a DEL, because another program ran it.
 */
export function claimedByOthers(kind: string, owner: Owner): unknown[] {
  for (const { path, header, entries } of listAllLedgers(startOfName(owner))) {
    if (isSameOwner(header, owner)) giveUp({ path, entries }, kind);
  }
  return specsOf(kind, withoutGone(recordsOfOthers(owner)));
}

/** Writes that the removal of this kind begins. */
export function giveUp({ path, entries }: Pick<LedgerRecord, "path" | "entries">, kind: string): void {
  if (!entries.some((entry) => entry.kind === kind && !entry.givenUp)) return;
  try {
    appendTo(path, `\n${JSON.stringify({ givenUp: kind })}\n`);
  } catch (error) {
    // For example a full disk. The removal must continue.
    warn(`ledger ${path} still claims what is being removed: ${(error as Error).message}`);
  }
}

function recordsOfOthers(owner: Owner): LedgerRecord[] {
  return listAllLedgers().filter(({ header }) => !isSameOwner(header, owner));
}

function specsOf(kind: string, records: readonly LedgerRecord[]): unknown[] {
  const specs: unknown[] = [];
  for (const { entries } of records) {
    for (const entry of entries) if (entry.kind === kind && !entry.givenUp) specs.push(entry.spec);
  }
  return specs;
}

function withoutGone(records: readonly LedgerRecord[]): readonly LedgerRecord[] {
  if (records.every(({ header }) => hasPath(header.netnsPath))) return records;
  const { HostView, whereabouts } = lazily(), view = new HostView();
  return records.filter((record) =>
    hasPath(record.header.netnsPath) || whereabouts({ records: [record], found: undefined }, view) !== "gone"
  );
}

function hasPath(netnsPath: string): boolean {
  try {
    identify(netnsPath);
    return true;
  } catch (error) {
    return !isErrno(error, ENOENT);
  }
}

function appendTo(path: string, text: string): void {
  const fd = openExistingState(path, O_WRONLY | O_APPEND)?.fd;
  if (fd !== undefined) whileOpen(fd, () => writeAll(fd, utf8(text), path));
}
