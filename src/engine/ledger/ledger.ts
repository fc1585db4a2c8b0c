/**
 * The ledger of one attachment and plugin: what was meant to be made, written before it is made.
 *
 * One file, one JSON document a line: first the header (whose attachment it is, and the configuration ADD was called
 * with), then each resource in the order of its making, and at the end what ADD answered; and what DEL gives up where
 * others may claim it too. Lines are appended with one write(2); a line without its newline was cut off by a crash, and
 * what it announces was never begun.
 */
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import {
  closeFile,
  identify,
  isDirectory,
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
} from "../../ffi/files.ts";
import { bind, check, utf8 } from "../../ffi/libc.ts";
import { lockShared, tryLockExclusive } from "../../ffi/lock.ts";
import { privateDirectory, stateDirectory } from "../state-directory.ts";
import type { Owner } from "../../contract/owner.ts";
import { warn } from "../../ffi/warn.ts";

const FORMAT = 1;

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
  finish(answer: AddAnswer): boolean;
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
  lockShared(fd); // see repairing()
  const earlierBytes = identify(fd).size;
  // A line cut off by a crash must not swallow the ones to come.
  let pending = (earlierBytes > 0 ? "\n" : "") + JSON.stringify({ patchbay: FORMAT, ...header }) + "\n";
  /** What helps, and what a full disk must not make an ADD fail for. */
  const note = (line: unknown) => {
    try {
      writeAll(fd, utf8(JSON.stringify(line) + "\n"), path);
    } catch (error) {
      warn(`ledger ${path} is not complete: ${(error as Error).message}`);
    }
  };
  return {
    intend(resources) {
      let lines = pending;
      for (const { kind, spec } of resources) lines += JSON.stringify({ kind: kind.kind, spec }) + "\n";
      writeAll(fd, utf8(lines), path);
      pending = "";
    },
    finish(answer) {
      note({ answer });
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

export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.network === other.network && one.containerId === other.containerId && one.ifName === other.ifName;
}

/** All ledgers of one plugin in one network. */
export function listLedgers(network: string, plugin: string): LedgerRecord[] {
  return recordsIn(networkDirectory(network)).filter(({ header }) =>
    header.plugin === plugin && header.network === network
  );
}

/** Those that can be read. With `start`, those whose file name begins so. */
function recordsIn(directory: string, start = ""): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const name of listDirectory(directory)) {
    const record = name.startsWith(start) ? readLedgerFile(`${directory}/${name}`) : undefined;
    if (record !== undefined) records.push(record);
  }
  return records;
}

/** Every ledger that can be read, of all networks. With `start`, those whose file name begins so. */
export function listAllLedgers(start = ""): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const network of listDirectory(stateDirectory())) {
    const directory = `${stateDirectory()}/${network}`;
    if (!isDirectory(identify(directory, false))) continue;
    records.push(...recordsIn(directory, start));
  }
  return records;
}

/** How the names of the ledgers of one interface of one container begin. */
export function startOfName({ containerId, ifName }: Omit<Owner, "network">): string {
  return `${containerId}@${ifName}@`.slice(0, KEPT_OF_LONG_NAMES);
}

/** The ledgers of one attachment, one a plugin. */
export function listLedgersOf(owner: Owner): LedgerRecord[] {
  return recordsIn(networkDirectory(owner.network), startOfName(owner)).filter(({ header }) =>
    isSameOwner(header, owner)
  );
}

/**
 * Runs `work`, which takes away what the ledger holds and then the ledger, while nobody makes any of it again: what a
 * repair brings back in between would have no ledger.
 */
export function removing<T>(record: LedgerRecord | undefined, work: () => T): T {
  const fd = record && openToLock(record.path);
  try {
    if (fd !== undefined) lockShared(fd);
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
    if (!tryLockExclusive(fd) || identify(fd).links === 0) return false;
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
