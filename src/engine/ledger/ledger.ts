/** Reads, locks and removes ledgers. Their format is in record.ts. */
import { beforeWaitingFor } from "../../process/patience.ts";
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import {
  closeFile,
  entriesIn,
  idAt,
  identify,
  isLink,
  isRegularFile,
  listDirectory,
  namesIn,
  O_RDONLY,
  removeEmptyDirectory,
  removeFile,
  whileOpen,
} from "../../ffi/files.ts";
import { lockShared, StillLocked, tryLockExclusive, tryLockShared } from "../../process/lock.ts";
import {
  isTrustedDirectory,
  judgeStateDirectory,
  openExistingState,
  readStateFile,
  UntrustedState,
} from "../../process/state-file.ts";
import { warn, warnOnce } from "../../process/warn.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { isSameOwner, type Owner } from "../../contract/owner.ts";
import { isLedgerName, ledgerPath, networkDirectory, startOfName } from "./paths.ts";
import { type LedgerRecord, parseLedger } from "./record.ts";

function readLedgerFile(path: string, lastAttempt = false): LedgerRecord | undefined {
  try {
    const text = readStateFile(path), record = text === undefined ? undefined : parseLedger(path, text);
    // What it says is removed by the name in its header: this file would stay for ever.
    if (record !== undefined && ledgerPath(record.header, record.header.plugin) !== path) {
      throw new Error("its header is another file's");
    }
    return record;
  } catch (error) {
    // Try twice, for example after too many open files: nothing else records what ADD made.
    if (!lastAttempt) return readLedgerFile(path, true);
    // A ledger that cannot be read or trusted counts as lost: DEL restates from the configuration.
    warnOnce(`ledger ${path} is left out: ${(error as Error).message}`);
    return undefined;
  }
}

/** The ledger of this attachment, or undefined when there is no readable one. */
export function readLedger(owner: Owner, plugin: string): LedgerRecord | undefined {
  const record = readLedgerFile(ledgerPath(owner, plugin));
  if (record === undefined || !isSameOwner(record.header, owner)) return undefined;
  return isTrusted(networkDirectory(owner.network)) ? record : undefined;
}

/** A program that can write to the state directory can exchange the directories of networks. */
function isTrusted(directory: string): boolean {
  return isTrustedDirectory(stateDirectory()) && isTrustedDirectory(directory);
}

/** All ledgers of one plugin in one network. */
export function listLedgers(network: string, plugin: string): LedgerRecord[] {
  return recordsOf(network).filter(({ header }) => header.plugin === plugin && header.network === network);
}

function recordsOf(network: string, start = ""): LedgerRecord[] {
  const directory = networkDirectory(network);
  return isTrusted(directory) ? recordsIn(directory, start) : [];
}

function ledgerNamesIn(directory: string): string[] {
  return listDirectory(directory).filter(isLedgerName);
}

/** The readable ledgers whose file name begins with `start`, in a directory that is trusted. */
function recordsIn(directory: string, start = ""): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const name of ledgerNamesIn(directory)) {
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

/** Ledgers that cannot be read, and directories of them that are not trusted: what they record nobody can tell. */
export function unreadableLedgers(): string[] {
  const state = stateDirectory();
  if (idAt(state) === undefined) return [];
  if (!isTrustedDirectory(state)) return [state];
  const links = namesIn(state).map((name) => `${state}/${name}`).filter((path) => isLink(identify(path, false)));
  const ofNetworks = directoriesIn(state).flatMap((directory) => {
    if (!isTrustedDirectory(directory)) return [directory];
    const paths = ledgerNamesIn(directory).map((name) => `${directory}/${name}`);
    return paths.filter((path) => readLedgerFile(path) === undefined && idAt(path) !== undefined);
  });
  return [...links, ...ofNetworks];
}

/** Ledgers of the plugin in all networks, at most so many: others each time where there are more. */
export function someLedgers(plugin: string, most: number): LedgerRecord[] {
  const isOfPlugin = (name: string) => name.endsWith(`@${plugin}`);
  const paths = networkDirectories().flatMap((directory) =>
    listDirectory(directory).filter(isOfPlugin).map((name) => `${directory}/${name}`)
  );
  const first = paths.length <= most ? 0 : Math.floor(Math.random() * paths.length);
  const chosen = [...paths.slice(first), ...paths.slice(0, first)].slice(0, most);
  return chosen.flatMap((path) => readLedgerFile(path) ?? []).filter(({ header }) => header.plugin === plugin);
}

function networkDirectories(): string[] {
  const state = stateDirectory();
  return isTrustedDirectory(state) ? directoriesIn(state).filter((directory) => isTrustedDirectory(directory)) : [];
}

/** The directories of networks. The state directory also has the resident's socket. */
function directoriesIn(state: string): string[] {
  const networks = entriesIn(state).filter(({ kind }) => kind === "directory").map(({ name }) => name).sort();
  return networks.map((name) => `${state}/${name}`);
}

export function listLedgersOfContainer(containerId: string): LedgerRecord[] {
  return listAllLedgers(startOfName({ containerId })).filter(({ header }) => header.containerId === containerId);
}

/** The ledgers of one attachment, one for each plugin. */
export function listLedgersOf(owner: Owner): LedgerRecord[] {
  return recordsOf(owner.network, startOfName(owner)).filter(({ header }) => isSameOwner(header, owner));
}

/**
 * Runs `work`, which removes the ledger's resources and then the ledger, under the shared lock. The lock excludes a
 * repair, which would otherwise make a resource again that no ledger records.
 *
 * `gone`: the ledgers that showed that the container is gone. When this one is another by now, a container of that id was
 * attached since: throws, and nothing is removed. Then the lock is exclusive: an ADD that comes meanwhile waits, finds its
 * ledger removed, and undoes itself.
 */
export function removing<T>(record: LedgerRecord | undefined, work: () => T, gone?: readonly LedgerRecord[]): T {
  if (record !== undefined && gone !== undefined) return removingGone(record, work, gone);
  const fd = record && openToLock(record.path);
  try {
    if (fd !== undefined) lockUnlessHeld(fd);
    return work();
  } finally {
    if (fd !== undefined) closeFile(fd);
  }
}

function removingGone<T>(record: LedgerRecord, work: () => T, gone: readonly LedgerRecord[]): T {
  const judged = gone.find(({ path }) => path === record.path);
  let done: { value: T } | undefined;
  const isFree = repairing(record, () => {
    const now = readLedgerFile(record.path);
    if (judged !== undefined && Bun.deepEquals(addsOf(now), addsOf(judged))) done = { value: work() };
  });
  if (done !== undefined) return done.value;
  const { containerId, ifName, network } = record.header, reason = isFree ? "it is attached again" : "it is in use";
  throw new Error(`${ifName} of container ${containerId} stays in network ${network}: ${reason}`);
}

/** Leaves out the resources: DEL writes into a ledger what it gives up. */
function addsOf(record: LedgerRecord | undefined) {
  return record?.adds.map(({ header, answer }) => ({ header, answer }));
}

/** A repair that hangs must not keep clean-up from its work for ever. */
function lockUnlessHeld(fd: number): void {
  if (tryLockShared(fd)) return;
  beforeWaitingFor("another operation");
  try {
    lockShared(fd);
  } catch (error) {
    if (!(error instanceof StillLocked)) throw error;
    warn(`DEL goes on without the lock: ${error.message}`);
  }
}

/** If the file cannot be opened, the removal continues without the lock: a concurrent repair is unlikely. */
function openToLock(path: string): number | undefined {
  try {
    return openExistingState(path, O_RDONLY)?.fd;
  } catch {
    return undefined;
  }
}

/** Runs `work` under the exclusive lock. Returns false, without running it, while an ADD or DEL holds the lock, or after DEL. */
export function repairing({ path }: LedgerRecord, work: () => void): boolean {
  const fd = openExistingState(path, O_RDONLY)?.fd;
  return fd !== undefined && whileOpen(fd, () => {
    if (!tryLockExclusive(fd) || identify(fd).links === 0) return false;
    work();
    return true;
  });
}

/** An ADD that was killed before it wrote its first line leaves an empty file. */
export function removeEmptyLedgers(network: string): void {
  removeEmptyFilesIn(networkDirectory(network), () => true);
}

export function removeEmptyLedgersOfContainer(containerId: string): void {
  const start = startOfName({ containerId });
  for (const directory of networkDirectories()) removeEmptyFilesIn(directory, (name) => name.startsWith(start));
}

/** In all networks; of one plugin, or of every one. */
export function removeAllEmptyLedgers(plugin?: string): void {
  const isMeant = (name: string) => plugin === undefined || name.endsWith(`@${plugin}`);
  for (const directory of networkDirectories()) removeEmptyFilesIn(directory, isMeant);
}

/** Other files stay: the state directory can be chosen, and may be one that others use. */
function removeEmptyFilesIn(directory: string, isMeant: (name: string) => boolean): void {
  if (!isTrusted(directory)) return;
  for (const name of ledgerNamesIn(directory).filter(isMeant)) removeIfEmpty(`${directory}/${name}`);
  if (hasOurMode(directory)) removeEmptyDirectory(directory);
}

/** An ADD that is about to write its first line holds the lock. */
function removeIfEmpty(path: string): void {
  const fd = looksEmpty(path) ? openToLock(path) : undefined;
  if (fd === undefined) return;
  whileOpen(fd, () => {
    if (tryLockExclusive(fd) && identify(fd).size === 0) removeFile(path);
  });
}

function looksEmpty(path: string): boolean {
  try {
    const file = identify(path, false);
    return isRegularFile(file) && file.size === 0;
  } catch {
    // A DEL of another container has removed it meanwhile, or it is another's.
    return false;
  }
}

/** As `privateDirectory` makes them. */
function hasOurMode(directory: string): boolean {
  try {
    return (identify(directory, false).mode & 0o7777) === 0o700;
  } catch {
    return false;
  }
}

/** The last step of a DEL without a ledger: removes the file that could not be read or trusted. Never fails. */
export function removeLostLedger(owner: Owner, plugin: string): void {
  try {
    if (idAt(ledgerPath(owner, plugin)) === undefined) return;
    judgeStateDirectory(stateDirectory());
    if (judgeStateDirectory(networkDirectory(owner.network))) removeLedger(owner, plugin);
  } catch (error) {
    // The reading has warned of the directory. Nothing in another's directory is ours.
    if (!(error instanceof UntrustedState)) {
      warn(`ledger ${ledgerPath(owner, plugin)} stays: ${(error as Error).message}`);
    }
  }
}

/** The last step of DEL. */
export function removeLedger(owner: Owner, plugin: string): void {
  try {
    if (removeFile(ledgerPath(owner, plugin))) removeEmptyDirectory(networkDirectory(owner.network));
  } catch (error) {
    if (!isErrno(error, ENOENT)) throw error;
  }
}
