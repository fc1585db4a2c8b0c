/**
 * The ledger of one attachment and plugin: what was meant to be made, written before it is made.
 *
 * One file, one JSON document a line: first the header (whose attachment it is, and the configuration ADD was called
 * with), then each resource in the order of its making; and what DEL gives up where others may claim it too. Lines are
 * appended with one write(2); a line without its newline was cut off by a crash, and what it announces was never begun.
 */
import { ENOENT, isErrno } from "../ffi/errno.ts";
import {
  closeFile,
  identify,
  listDirectory,
  O_APPEND,
  O_CREAT,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openExisting,
  openFile,
  readTextFile,
  removeEmptyDirectory,
  removeFile,
  writeAll,
} from "../ffi/files.ts";
import { bind, check, libc, utf8 } from "../ffi/libc.ts";
import { privateDirectory, stateDirectory } from "./state-directory.ts";
import type { Owner } from "./resource.ts";
import { warn } from "../ffi/warn.ts";

const FORMAT = 1;
const LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4;

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
  /** Of the ADD that announced it: there may have been several. */
  netns?: string;
}

export interface LedgerRecord {
  path: string;
  header: LedgerHeader;
  entries: LedgerEntry[];
  /** Something in the file cannot be read: DEL must not rely on it alone. */
  damaged: boolean;
}

const KEPT_OF_LONG_NAMES = 100;

/** Names longer than a file name may be are kept by their hash. */
function fileName(text: string): string {
  if (text.length <= 200) return text;
  return `${text.slice(0, KEPT_OF_LONG_NAMES)}~${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`;
}

function networkDirectory(network: string): string {
  return `${stateDirectory()}/${fileName(network)}`;
}

// "@" occurs in no network name and in no container id, so the parts cannot run into one another.
function ledgerPath({ network, containerId, ifName }: Owner, plugin: string): string {
  return `${networkDirectory(network)}/${fileName(`${containerId}@${ifName}@${plugin}`)}`;
}

/** A ledger that is being written by ADD. */
export interface OpenLedger {
  /** Announces resources; they are made only after this returned. */
  intend(resources: readonly { kind: { kind: string }; spec: unknown }[]): void;
  /** ADD is over. Answers false when DEL took the ledger away meanwhile: what was made must go. */
  finish(): boolean;
  /** ADD failed and all was undone: forgets what it announced. An earlier ADD's entries stay. */
  abandon(): void;
  /** ADD failed and something could not be undone: the file stays for DEL. */
  keep(): void;
}

/** Starts, or goes on with, the ledger of an ADD. */
export function openLedger(header: Omit<LedgerHeader, "patchbay">): OpenLedger {
  const path = ledgerPath(header, header.plugin);
  privateDirectory(networkDirectory(header.network));
  const fd = openFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  libc.flock(fd, LOCK_SH); // see repairing()
  const earlierBytes = identify(fd).size;
  // A line cut off by a crash must not swallow the ones to come.
  let pending = (earlierBytes > 0 ? "\n" : "") + JSON.stringify({ patchbay: FORMAT, ...header }) + "\n";
  return {
    intend(resources) {
      let lines = pending;
      for (const { kind, spec } of resources) lines += JSON.stringify({ kind: kind.kind, spec }) + "\n";
      writeAll(fd, utf8(lines), path);
      pending = "";
    },
    finish() {
      const { links } = identify(fd);
      closeFile(fd);
      return links > 0;
    },
    abandon() {
      if (earlierBytes === 0) removeFile(path);
      else {check(
          "ftruncate",
          bind({ ftruncate: { args: ["i32", "i64"], returns: "i32" } }).ftruncate(fd, earlierBytes),
        );}
      closeFile(fd);
      removeEmptyDirectory(networkDirectory(header.network));
    },
    keep: () => closeFile(fd),
  };
}

function parseLedger(path: string, text: string): LedgerRecord | undefined {
  let header: LedgerHeader | undefined;
  let damaged = false;
  const entries: LedgerEntry[] = [];
  const lines = text.split("\n");
  lines.pop(); // what follows the last newline was never begun
  for (const line of lines) {
    if (line === "") continue;
    try {
      const value = JSON.parse(line);
      if (typeof value.patchbay === "number") header = value;
      else if (typeof value.kind === "string") entries.push({ ...value, netns: header?.netns });
      else if (typeof value.givenUp === "string") giveUp(entries, value.givenUp);
      else damaged = true;
    } catch {
      damaged = true;
    }
  }
  if (header === undefined || header.patchbay !== FORMAT) return undefined;
  return { path, header, entries, damaged };
}

function giveUp(entries: LedgerEntry[], kind: string): void {
  for (const entry of entries) if (entry.kind === kind) entry.givenUp = true;
}

function readLedgerFile(path: string, lastAttempt = false): LedgerRecord | undefined {
  try {
    const text = readTextFile(path);
    return text === undefined ? undefined : parseLedger(path, text);
  } catch (error) {
    // Too many open files, say: it holds what nothing else tells.
    if (!lastAttempt) return readLedgerFile(path, true);
    // An unreadable ledger is a lost ledger: DEL then restates from the configuration.
    warn(`ledger ${path} cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

/** What ADD wrote down for this attachment, or undefined when there is nothing that can be read. */
export function readLedger(owner: Owner, plugin: string): LedgerRecord | undefined {
  const record = readLedgerFile(ledgerPath(owner, plugin));
  return record !== undefined && isSameOwner(record.header, owner) ? record : undefined;
}

function isSameOwner(one: Owner, other: Owner): boolean {
  return one.network === other.network && one.containerId === other.containerId && one.ifName === other.ifName;
}

/** All ledgers of one plugin in one network. */
export function listLedgers(network: string, plugin: string): LedgerRecord[] {
  const directory = networkDirectory(network);
  return listDirectory(directory)
    .map((name) => readLedgerFile(`${directory}/${name}`))
    .filter((record) => record !== undefined)
    .filter(({ header }) => header.plugin === plugin && header.network === network);
}

/** Every ledger that can be read, of all networks. With `start`, those whose file name begins so. */
export function listAllLedgers(start = ""): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const network of listDirectory(stateDirectory())) {
    const directory = `${stateDirectory()}/${network}`;
    if ((identify(directory, false).mode & 0o170000) !== 0o040000) continue;
    for (const name of listDirectory(directory)) {
      if (!name.startsWith(start)) continue;
      const record = readLedgerFile(`${directory}/${name}`);
      if (record !== undefined) records.push(record);
    }
  }
  return records;
}

function startOfName({ containerId, ifName }: Omit<Owner, "network">): string {
  return `${containerId}@${ifName}@`.slice(0, KEPT_OF_LONG_NAMES);
}

/** The ledgers of the same interface of the same container in other networks. */
export function listRivals({ network, containerId, ifName }: Owner): LedgerRecord[] {
  const rivals: LedgerRecord[] = [];
  for (const record of listAllLedgers(startOfName({ containerId, ifName }))) {
    const { header } = record;
    if (header.containerId === containerId && header.ifName === ifName && header.network !== network) {
      rivals.push(record);
    }
  }
  return rivals;
}

/** What the ledgers of all attachments but this one hold of a kind, and have not given up. */
export function recordedByOthers(kind: string, owner: Owner): unknown[] {
  const specs: unknown[] = [];
  for (const { header, entries } of listAllLedgers()) {
    if (isSameOwner(header, owner)) continue;
    for (const entry of entries) if (entry.kind === kind && !entry.givenUp) specs.push(entry.spec);
  }
  return specs;
}

/**
 * The same for a removal, which leaves to the others what does not say whose it is. Its own claim is given up before it
 * looks, so that of two at once each may find none, but never both the other's.
 */
export function claimedByOthers(kind: string, owner: Owner): unknown[] {
  for (const { path, header, entries } of listAllLedgers(startOfName(owner))) {
    if (!isSameOwner(header, owner) || !entries.some((entry) => entry.kind === kind && !entry.givenUp)) continue;
    try {
      appendTo(path, `\n${JSON.stringify({ givenUp: kind })}\n`);
    } catch (error) {
      // On a full disk, say. Removing must go on.
      warn(`ledger ${path} goes on claiming what is being removed: ${(error as Error).message}`);
    }
  }
  return recordedByOthers(kind, owner);
}

function appendTo(path: string, text: string): void {
  const fd = openExisting(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
  if (fd === undefined) return;
  try {
    writeAll(fd, utf8(text), path);
  } finally {
    closeFile(fd);
  }
}

/**
 * Runs `work`, which takes away what the ledger holds and then the ledger, while nobody makes any of it again: what a
 * repair brings back in between would have no ledger.
 */
export function removing<T>(record: LedgerRecord | undefined, work: () => T): T {
  const fd = record && openToLock(record.path);
  try {
    if (fd !== undefined) libc.flock(fd, LOCK_SH);
    return work();
  } finally {
    if (fd !== undefined) closeFile(fd);
  }
}

/** A repair at the same time is unlikely; what keeps the file from being opened is no reason not to remove. */
function openToLock(path: string): number | undefined {
  try {
    return openExisting(path, O_RDONLY | O_NOFOLLOW);
  } catch {
    return undefined;
  }
}

/** Runs `work` while nobody adds or deletes what the ledger holds; answers false, without it, when somebody does. */
export function repairing({ path }: LedgerRecord, work: () => void): boolean {
  const fd = openExisting(path, O_RDONLY | O_NOFOLLOW);
  if (fd === undefined) return false;
  try {
    if (libc.flock(fd, LOCK_EX | LOCK_NB) !== 0 || identify(fd).links === 0) return false;
    work();
    return true;
  } finally {
    closeFile(fd);
  }
}

/** GC's part in what was never begun: an ADD that was killed before it wrote its first line leaves an empty file. */
export function removeEmptyLedgers(network: string): void {
  const directory = networkDirectory(network);
  for (const name of listDirectory(directory)) {
    if (identify(`${directory}/${name}`, false).size === 0) removeFile(`${directory}/${name}`);
  }
  removeEmptyDirectory(directory);
}

/** The last act of DEL. A file that cannot be read as a ledger goes too. */
export function removeLedger(owner: Owner, plugin: string): void {
  try {
    if (removeFile(ledgerPath(owner, plugin))) removeEmptyDirectory(networkDirectory(owner.network));
  } catch (error) {
    if (!isErrno(error, ENOENT)) throw error;
  }
}
