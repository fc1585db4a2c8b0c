/**
 * The lease files: `<dataDir>/<network>/<address>`, in the format and by the rules of the Go host-local plugin.
 *
 * They are the source of truth. An address is leased when its file exists, to the owner that the file names; a process
 * claims it by creating the file exclusively. So people and programs may list, read and remove these files, and Go's
 * plugin can take over the directory or work in it at the same time.
 *
 *     10.88.0.2             `<containerID>\r\n<ifName>` without a line end; very old files have no second line,
 *                           those of a directory that networks share have a third: `<network>`
 *     last_reserved_ip.0    the address that the first range set allocated last
 *     lock                  held by Go's plugin with flock(2) while it works; exists only if that has run here
 *     .patchbay/            our index (store.ts)
 */
import { checkNetworkName } from "../cni/invocation.ts";
import { EEXIST, EFBIG, isErrno } from "../ffi/errno.ts";
import {
  closeFile,
  entriesIn,
  namesIn,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openFile,
  removeFile,
  syncDescriptor,
  syncDirectory,
  unlessFailing,
  whileOpen,
  writeAll,
} from "../ffi/files.ts";
import { utf8 } from "../ffi/libc.ts";
import { lockExclusive } from "../process/lock.ts";
import {
  openExistingState,
  overwriteStateFile,
  readStateFile,
  unlessUntrusted,
  UntrustedState,
} from "../process/state-file.ts";
import { formatAddress, parseAddress } from "../net/address.ts";

/** With a folder of leases for each network. */
export const DEFAULT_DATA_DIRECTORY = "/var/lib/cni/networks";
/** With a folder of leases for each pool, which networks share. Go's plugin never works there. */
export const DEFAULT_POOLS_DIRECTORY = "/var/lib/patchbay/pools";

/** One directory has one such spelling, but for links and dots. */
export function withoutSpareSlashes(directory: string): string {
  return directory.replace(/\/+/g, "/").replace(/(?<=.)\/$/, "");
}

/** Throws for what is no network's name: `..` leads out of the data directory. */
export function leaseDirectory(dataDirectory: string, network: string): string {
  checkNetworkName(network);
  return `${dataDirectory}/${network}`;
}

const CURSOR = "last_reserved_ip.";

/** The files of a network's directory that are no leases. */
export function isOfStore(name: string): boolean {
  return name === "lock" || name.startsWith(CURSOR);
}

export interface LeaseOwner {
  containerId: string;
  /** Absent in files of very old versions: then any interface of the container. */
  ifName?: string;
  /** Where several networks have one directory, and Go's plugin never works: whose lease it is. */
  inNetwork?: string;
}

/** The content of the owner's lease files. */
export function leaseText({ containerId, ifName, inNetwork }: LeaseOwner): string {
  if (ifName === undefined) return containerId;
  return inNetwork === undefined ? `${containerId}\r\n${ifName}` : `${containerId}\r\n${ifName}\r\n${inNetwork}`;
}

/** The owner that a lease file names; undefined for empty files and those that people wrote. */
export function leaseOwnerIn(text: string): LeaseOwner | undefined {
  const [, containerId, ifName, inNetwork] =
    /^([a-zA-Z0-9][a-zA-Z0-9_.-]*)(?:\r\n(\S+)(?:\r\n(\S+))?)?$/.exec(text) ?? [];
  if (containerId === undefined) return undefined;
  return inNetwork === undefined ? { containerId, ifName } : { containerId, ifName, inNetwork };
}

/** Creates the lease file; answers false when it exists. Removes it again before it throws. */
export function createLease(directory: string, address: Uint8Array, text: string, durable: boolean): boolean {
  const path = leasePath(directory, address);
  let fd: number;
  try {
    fd = openFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  } catch (error) {
    if (isErrno(error, EEXIST)) return false;
    throw error;
  }
  unlessFailing(path, fd, () => {
    writeAll(fd, utf8(text), path);
    if (!durable) return;
    syncDescriptor(fd, path);
    syncDirectory(directory);
  });
  return true;
}

/** The content of the lease file, trimmed like Go does: "" for an empty file, undefined when there is none. */
export function readLease(directory: string, address: Uint8Array): string | undefined {
  return readState(leasePath(directory, address))?.trim();
}

function leasePath(directory: string, address: Uint8Array): string {
  return `${directory}/${formatAddress(address)}`;
}

/** In place of content; no owner can have this name. */
const NO_LEASE = "?no lease";
const LONGEST_BYTES = 65536;

/** The files may be anybody's: they decide only which address is free. */
function readState(path: string): string | undefined {
  try {
    return readStateFile(path, "anybody's", LONGEST_BYTES);
  } catch (error) {
    if (error instanceof UntrustedState || isErrno(error, EFBIG)) return NO_LEASE;
    throw error;
  }
}

/** Removes the lease file if it contains `text`. Returns its content; undefined when there is none. */
export function removeLease(directory: string, address: Uint8Array, text: string): string | undefined {
  return underGoLock(directory, () => {
    const found = readLease(directory, address);
    if (found === text) removeFile(leasePath(directory, address));
    return found;
  });
}

/**
 * Runs `work`, which reads and removes a file, under the lock of Go's plugin, if that has run here. Our own processes are
 * kept apart by the locks of store.ts.
 */
function underGoLock<T>(directory: string, work: () => T): T {
  const fd = openGoLock(directory);
  if (fd === undefined) return work();
  return whileOpen(fd, () => {
    lockExclusive(fd, `${directory}/lock`);
    return work();
  });
}

function openGoLock(directory: string): number | undefined {
  return unlessUntrusted(() => openExistingState(`${directory}/lock`, O_RDONLY, "anybody's"))?.fd;
}

/** Whether Go's plugin has run here. */
export function hasGoLock(directory: string): boolean {
  const fd = openGoLock(directory);
  if (fd !== undefined) closeFile(fd);
  return fd !== undefined;
}

/** The addresses that have lease files. */
export function leasedAddresses(directory: string): Uint8Array[] {
  return namesIn(directory).map(addressOfName).filter((address) => address !== undefined);
}

/** The address whose lease file has this name. Go and we use only the canonical spelling. */
function addressOfName(name: string): Uint8Array | undefined {
  const address = parseAddress(name);
  return address !== undefined && formatAddress(address) === name ? address : undefined;
}

/** A file somewhere below the directory, with its content. */
interface Found {
  path: string;
  text: string;
}

/**
 * Every file that contains one of `texts`, whatever its name, also in subdirectories: Go's plugin searches the same in
 * each DEL. Does not read the files of addresses for which `isOthers` answers true.
 */
export function findEverywhere(
  directory: string,
  texts: readonly string[],
  isOthers: (address: Uint8Array) => boolean,
): Found[] {
  const found: Found[] = [];
  for (const { name, kind } of entriesIn(directory)) {
    const address = addressOfName(name);
    if (name.startsWith(".") || name.startsWith(CURSOR) || (address !== undefined && isOthers(address))) continue;
    const path = `${directory}/${name}`;
    if (kind === "directory") found.push(...findEverywhere(path, texts, isOthers));
    // Nothing else is opened: `dataDir` may be /dev.
    const text = kind === "file" ? readState(path)?.trim() : undefined;
    if (text !== undefined && texts.includes(text)) found.push({ path, text });
  }
  return found;
}

/** Removes the file if its content is still the same. */
export function removeFound(directory: string, { path, text }: Found): boolean {
  return underGoLock(directory, () => readState(path)?.trim() === text && removeFile(path));
}

/** The address that the range set allocated last, as text; undefined when unknown. */
export function readCursor(directory: string, rangeId: string): string | undefined {
  return readState(cursorPath(directory, rangeId));
}

/** Records the address allocated last. Only the order in which addresses are allocated depends on it. */
export function writeCursor(directory: string, rangeId: string, address: Uint8Array): void {
  overwriteStateFile(cursorPath(directory, rangeId), formatAddress(address), "anybody's");
}

function cursorPath(directory: string, rangeId: string): string {
  return `${directory}/${CURSOR}${rangeId}`;
}
