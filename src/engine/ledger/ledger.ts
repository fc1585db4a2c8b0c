/** Reads, locks and removes ledgers. Their format is in record.ts. */
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import {
  closeFile,
  identify,
  isDirectory,
  listDirectory,
  O_NOFOLLOW,
  O_RDONLY,
  openExisting,
  readTextFile,
  removeEmptyDirectory,
  removeFile,
} from "../../ffi/files.ts";
import { lockShared, tryLockExclusive } from "../../ffi/lock.ts";
import { warn } from "../../ffi/warn.ts";
import { stateDirectory } from "../state-directory.ts";
import { isSameOwner, type Owner } from "../../contract/owner.ts";
import { ledgerPath, networkDirectory, startOfName } from "./paths.ts";
import { type LedgerRecord, parseLedger } from "./record.ts";

function readLedgerFile(path: string, lastAttempt = false): LedgerRecord | undefined {
  try {
    const text = readTextFile(path);
    return text === undefined ? undefined : parseLedger(path, text);
  } catch (error) {
    // Try twice, for example after too many open files: nothing else records what ADD made.
    if (!lastAttempt) return readLedgerFile(path, true);
    // An unreadable ledger counts as lost: DEL restates from the configuration.
    warn(`ledger ${path} cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

/** The ledger of this attachment, or undefined when there is no readable one. */
export function readLedger(owner: Owner, plugin: string): LedgerRecord | undefined {
  const record = readLedgerFile(ledgerPath(owner, plugin));
  return record !== undefined && isSameOwner(record.header, owner) ? record : undefined;
}

/** All ledgers of one plugin in one network. */
export function listLedgers(network: string, plugin: string): LedgerRecord[] {
  return recordsIn(networkDirectory(network)).filter(({ header }) =>
    header.plugin === plugin && header.network === network
  );
}

/** The readable ledgers whose file name begins with `start`. */
function recordsIn(directory: string, start = ""): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const name of listDirectory(directory)) {
    const record = name.startsWith(start) ? readLedgerFile(`${directory}/${name}`) : undefined;
    if (record !== undefined) records.push(record);
  }
  return records;
}

/** The readable ledgers of all networks whose file name begins with `start`. */
export function listAllLedgers(start = ""): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const directory of networkDirectories()) records.push(...recordsIn(directory, start));
  return records;
}

function networkDirectories(): string[] {
  return listDirectory(stateDirectory()).map((network) => `${stateDirectory()}/${network}`).filter(isStillDirectory);
}

export function listLedgersOfContainer(containerId: string): LedgerRecord[] {
  return listAllLedgers(startOfName({ containerId })).filter(({ header }) => header.containerId === containerId);
}

/** Others remove what is there, too: the last DEL of a network its directory, a resident its socket. */
function isStillDirectory(path: string): boolean {
  try {
    return isDirectory(identify(path, false));
  } catch {
    return false;
  }
}

/** The ledgers of one attachment, one for each plugin. */
export function listLedgersOf(owner: Owner): LedgerRecord[] {
  return recordsIn(networkDirectory(owner.network), startOfName(owner)).filter(({ header }) =>
    isSameOwner(header, owner)
  );
}

/**
 * Runs `work`, which removes the ledger's resources and then the ledger, under the shared lock. The lock excludes a
 * repair, which would otherwise make a resource again that no ledger records.
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

/** If the file cannot be opened, the removal continues without the lock: a concurrent repair is unlikely. */
function openToLock(path: string): number | undefined {
  try {
    return openExisting(path, O_RDONLY | O_NOFOLLOW);
  } catch {
    return undefined;
  }
}

/** Runs `work` under the exclusive lock. Returns false, without running it, while an ADD or DEL holds the lock. */
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

/** An ADD that was killed before it wrote its first line leaves an empty file. */
export function removeEmptyLedgers(network: string): void {
  removeEmptyFilesIn(networkDirectory(network), "");
}

export function removeEmptyLedgersOfContainer(containerId: string): void {
  for (const directory of networkDirectories()) removeEmptyFilesIn(directory, startOfName({ containerId }));
}

function removeEmptyFilesIn(directory: string, start: string): void {
  const names = listDirectory(directory).filter((name) => name.startsWith(start));
  for (const name of names) {
    if (isEmptyFile(`${directory}/${name}`)) removeFile(`${directory}/${name}`);
  }
  if (names.length > 0 || start === "") removeEmptyDirectory(directory);
}

function isEmptyFile(path: string): boolean {
  try {
    return identify(path, false).size === 0;
  } catch {
    // A DEL of another container has removed it meanwhile.
    return false;
  }
}

/** The last step of DEL. Removes an unreadable file too. */
export function removeLedger(owner: Owner, plugin: string): void {
  try {
    if (removeFile(ledgerPath(owner, plugin))) removeEmptyDirectory(networkDirectory(owner.network));
  } catch (error) {
    if (!isErrno(error, ENOENT)) throw error;
  }
}
