/**
 * The format of a ledger: one JSON document on each line (docs/ledger.md). First the header (the attachment, and the
 * configuration of ADD), then each resource in order, at the end ADD's answer. DEL appends the kinds that it gives up
 * because others may claim the same thing. A line without its newline was cut off by a crash, and what it announces was
 * never begun.
 */
import { configVersion, KNOWN_VERSIONS } from "../../cni/versions.ts";
import { isObject } from "../../cni/json.ts";
import type { Owner } from "../../contract/owner.ts";

/** Raised when an older version could not read what is written: also for a new form of line (docs/versions.md). */
export const FORMAT = 1;

export interface LedgerHeader extends Owner {
  /** The format of this ADD's lines. */
  patchbay: number;
  plugin: string;
  netnsPath: string;
  /** Container.cookie at the time of ADD. */
  netns?: string;
  /** Host.cookie at the time of ADD. */
  hostNetns?: string;
  /** What the process of ADD saw of others: `ownSight` of ffi/netns-in-sight.ts. */
  sight?: string;
  cniArgs: string;
  /** The process that handed its call over to a resident: if that dies, the process runs the call itself. */
  caller?: string;
  /** The network configuration of ADD. Delegates are undone with it, even if the configuration has changed since. */
  stdin: string;
}

export interface LedgerEntry {
  kind: string;
  spec: unknown;
  /** DEL has begun to remove it, so it no longer claims things that others claim too. */
  givenUp?: true;
}

/** The part of an ADD's result that distinguishes it from other ADDs of the same attachment. */
export interface AddAnswer {
  /** The links on the host. */
  links: string[];
  /** The MAC of the container's link, when there is no link on the host. */
  mac?: string;
  addresses: string[];
}

/** One recorded ADD. There are several when an engine calls ADD again without DEL. */
export interface LedgerAdd {
  header: LedgerHeader;
  entries: LedgerEntry[];
  /** Undefined when ADD did not finish. */
  answer?: AddAnswer;
}

export interface LedgerRecord {
  path: string;
  /** Oldest first. */
  adds: LedgerAdd[];
  /** The header of the last ADD. */
  header: LedgerHeader;
  /** The entries of all ADDs. */
  entries: LedgerEntry[];
  /** A line is malformed, or in a newer format, so DEL must not rely on the ledger alone. */
  damaged: boolean;
}

/** Keys of a header whose values are texts. */
const TEXTS = ["network", "containerId", "ifName", "plugin", "netnsPath", "cniArgs"];

export function parseLedger(path: string, text: string): LedgerRecord | undefined {
  const adds: LedgerAdd[] = [], entries: LedgerEntry[] = [];
  let damaged = false;
  const lines = text.split("\n");
  lines.pop(); // what follows the last newline was never begun
  for (const line of lines) {
    if (line === "") continue;
    try {
      const value = JSON.parse(line), add = adds.at(-1);
      if (value.patchbay > FORMAT) {
        const newer = ofNewerFormat(value);
        adds.push(newer);
        entries.push(...newer.entries);
        damaged = true;
      } else if (typeof value.patchbay === "number") {
        // Delegates get it as it is. What they refuse would fail every DEL.
        if (!isConfiguration(JSON.parse(value.stdin))) throw new Error("not a configuration");
        if (!TEXTS.every((key) => typeof value[key] === "string")) throw new Error("not a header");
        adds.push({ header: value, entries: [] });
      } else if (add !== undefined && add.header.patchbay > FORMAT) {
        continue;
      } else if (add !== undefined && typeof value.kind === "string" && isObject(value.spec)) {
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
  if (header === undefined || header.patchbay < FORMAT) return undefined;
  return { path, adds, header, entries, damaged };
}

/**
 * In every format the header names the attachment and its namespace. The rest may mean anything, and what the ADD made
 * has one entry, of a kind that no table has.
 */
function ofNewerFormat(value: LedgerHeader): LedgerAdd {
  const { patchbay, network, containerId, ifName, plugin, netnsPath, netns, hostNetns, sight } = value;
  const texts = [network, containerId, ifName, plugin, netnsPath, netns ?? "", hostNetns ?? "", sight ?? ""];
  if (!texts.every((text) => typeof text === "string")) throw new Error("not a header");
  const owner = { network, containerId, ifName }, where = { netnsPath, netns, hostNetns, sight };
  return {
    header: { patchbay, ...owner, plugin, ...where, cniArgs: "", stdin: "{}" },
    entries: [{ kind: `format ${patchbay}`, spec: {} }],
  };
}

function isConfiguration(document: unknown): boolean {
  return isObject(document) && ["", ...KNOWN_VERSIONS].includes(configVersion(document));
}

function isAnswer(value: Partial<AddAnswer> | undefined): value is AddAnswer {
  return Array.isArray(value?.links) && Array.isArray(value.addresses);
}

function giveUp(entries: LedgerEntry[], kind: string): void {
  for (const entry of entries) if (entry.kind === kind) entry.givenUp = true;
}
