/**
 * The text of a ledger: one JSON document a line (docs/ledger.md). First the header (whose attachment it is, and the
 * configuration that ADD was called with), then each resource in the order of its making, at the end what ADD answered;
 * and what DEL gives up where others may claim it too. A line without its newline was cut off by a crash, and what it
 * announces was never begun.
 */
import type { Owner } from "../../contract/owner.ts";

export const FORMAT = 1;

export interface LedgerHeader extends Owner {
  patchbay: typeof FORMAT;
  plugin: string;
  netnsPath: string;
  /** Which namespace that was (Container.cookie). */
  netns?: string;
  cniArgs: string;
  /** The network configuration ADD was given: delegates are undone with it, whatever it says today. */
  stdin: string;
}

export interface LedgerEntry {
  kind: string;
  spec: unknown;
  /** Its removal has begun, and it claims nothing any more that others claim too. */
  givenUp?: true;
}

/** What of an ADD's answer tells it from another ADD of the same attachment. */
export interface AddAnswer {
  /** The links on the host. */
  links: string[];
  /** The container's link, where nothing on the host tells. */
  mac?: string;
  addresses: string[];
}

/** One ADD, as far as the ledger tells. There are several when an engine calls ADD again without DEL. */
export interface LedgerAdd {
  header: LedgerHeader;
  entries: LedgerEntry[];
  /** Missing: it did not come to its end. */
  answer?: AddAnswer;
}

export interface LedgerRecord {
  path: string;
  /** In the order of time. */
  adds: LedgerAdd[];
  /** Of the last ADD. */
  header: LedgerHeader;
  /** Of all of them. */
  entries: LedgerEntry[];
  /** Something in the file cannot be read: DEL must not rely on it alone. */
  damaged: boolean;
}

export function parseLedger(path: string, text: string): LedgerRecord | undefined {
  const adds: LedgerAdd[] = [], entries: LedgerEntry[] = [];
  let damaged = false;
  const lines = text.split("\n");
  lines.pop(); // what follows the last newline was never begun
  for (const line of lines) {
    if (line === "") continue;
    try {
      const value = JSON.parse(line), add = adds.at(-1);
      if (typeof value.patchbay === "number") adds.push({ header: value, entries: [] });
      else if (add !== undefined && typeof value.kind === "string") {
        add.entries.push(value);
        entries.push(value);
      } else if (add !== undefined && isAnswer(value.answer)) add.answer = value.answer;
      else if (typeof value.givenUp === "string") giveUp(entries, value.givenUp);
      else damaged = true;
    } catch {
      damaged = true;
    }
  }
  const header = adds.at(-1)?.header;
  if (header === undefined || header.patchbay !== FORMAT) return undefined;
  return { path, adds, header, entries, damaged };
}

function isAnswer(value: Partial<AddAnswer> | undefined): value is AddAnswer {
  return Array.isArray(value?.links) && Array.isArray(value.addresses);
}

function giveUp(entries: LedgerEntry[], kind: string): void {
  for (const entry of entries) if (entry.kind === kind) entry.givenUp = true;
}

export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.network === other.network && one.containerId === other.containerId && one.ifName === other.ifName;
}
