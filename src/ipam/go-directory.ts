/**
 * The lease files: `<dataDir>/<network>/<address>`, in the format and under the rules of the Go host-local plugin.
 *
 * They are the truth about leases. An address is leased when its file exists, to whom the file says; making the file
 * is what takes the address, and only one process can. So people and programs that list, read or remove these files
 * see and do the right thing, and Go's plugin can take the directory over, or work on it at the same time.
 *
 *     10.88.0.2             `<containerID>\r\n<ifName>`, no line end behind it; very old files have no second line
 *     last_reserved_ip.0    the address given out last by the first range set
 *     lock                  Go's: held by flock(2) while it works. Here only where Go's plugin has been
 *     .patchbay/            our index (store.ts)
 */
import { EEXIST, EISDIR, ELOOP, isErrno } from "../ffi/errno.ts";
import {
  closeFile,
  namesIn,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  openExisting,
  openFile,
  overwriteFile,
  readAll,
  removeFile,
  syncDescriptor,
  syncDirectory,
  writeAll,
} from "../ffi/files.ts";
import { fromUtf8, utf8 } from "../ffi/libc.ts";
import { lockExclusive } from "../ffi/lock.ts";
import { formatAddress, parseAddress } from "../net/address.ts";

const CURSOR = "last_reserved_ip.";

export interface LeaseOwner {
  containerId: string;
  /** Absent in files of very old versions: the lease is the container's, for whichever interface. */
  ifName?: string;
}

/** What the owner's lease files hold. */
export function leaseText({ containerId, ifName }: LeaseOwner): string {
  return ifName === undefined ? containerId : `${containerId}\r\n${ifName}`;
}

/** Whom a lease file names; undefined when it was written by a person for a purpose of his own, or is empty. */
export function ownerOf(text: string): LeaseOwner | undefined {
  const [, containerId, ifName] = /^([a-zA-Z0-9][a-zA-Z0-9_.-]*)(?:\r\n(\S+))?$/.exec(text) ?? [];
  return containerId === undefined ? undefined : { containerId, ifName };
}

/** Takes the address: false when somebody has it. Throws with nothing left behind. */
export function createLease(directory: string, address: Uint8Array, text: string, durable: boolean): boolean {
  const path = leasePath(directory, address);
  let fd: number;
  try {
    fd = openFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  } catch (error) {
    if (isErrno(error, EEXIST)) return false;
    throw error;
  }
  try {
    writeAll(fd, utf8(text), path);
    if (durable) {
      syncDescriptor(fd, path);
      syncDirectory(directory);
    }
  } catch (error) {
    removeFile(path);
    throw error;
  } finally {
    closeFile(fd);
  }
  return true;
}

/** What the address's file says, trimmed as Go does it: "" for an empty file, undefined when there is none. */
export function readLease(directory: string, address: Uint8Array): string | undefined {
  return readState(leasePath(directory, address))?.trim();
}

function leasePath(directory: string, address: Uint8Array): string {
  return `${directory}/${formatAddress(address)}`;
}

/** What these seem to say: nothing that an owner could be called. */
const DIRECTORY = "?directory", LINK = "?link";

function readState(path: string): string | undefined {
  let fd: number | undefined;
  try {
    fd = openExisting(path, O_RDONLY | O_NOFOLLOW);
    return fd === undefined ? undefined : fromUtf8(readAll(fd, 65536, path));
  } catch (error) {
    if (isErrno(error, EISDIR)) return DIRECTORY;
    if (isErrno(error, ELOOP)) return LINK;
    throw error;
  } finally {
    if (fd !== undefined) closeFile(fd);
  }
}

/** Removes the address's file if it says `text`. Answers what it said, undefined when there is none. */
export function removeLease(directory: string, address: Uint8Array, text: string): string | undefined {
  return asGo(directory, () => {
    const found = readLease(directory, address);
    if (found === text) removeFile(leasePath(directory, address));
    return found;
  });
}

/**
 * Looks at a file and removes it with nobody between. Our own processes are kept apart by the locks of store.ts; where
 * Go's plugin may be running, its lock keeps it from giving the address to somebody else at that moment.
 */
function asGo<T>(directory: string, work: () => T): T {
  const fd = openGoLock(directory);
  if (fd === undefined) return work();
  try {
    lockExclusive(fd, `${directory}/lock`);
    return work();
  } finally {
    closeFile(fd);
  }
}

function openGoLock(directory: string): number | undefined {
  return openExisting(`${directory}/lock`, O_RDONLY | O_NOFOLLOW);
}

/** Whether Go's plugin has worked here. */
export function hasGoLock(directory: string): boolean {
  const fd = openGoLock(directory);
  if (fd !== undefined) closeFile(fd);
  return fd !== undefined;
}

/** The addresses that have files. */
export function leasedAddresses(directory: string): Uint8Array[] {
  return namesIn(directory).map(addressOfName).filter((address) => address !== undefined);
}

/** The address whose lease file has this name. Go uses one spelling, and so does taking an address. */
function addressOfName(name: string): Uint8Array | undefined {
  const address = parseAddress(name);
  return address !== undefined && formatAddress(address) === name ? address : undefined;
}

/** A file somewhere in the directory, and what it says. */
export interface Found {
  path: string;
  text: string;
}

/**
 * Every file that says one of `texts`, whatever its name, in the directories below too: what Go's plugin looks for in
 * each DEL. Files of addresses that are known to be others' are not read.
 */
export function findEverywhere(
  directory: string,
  texts: readonly string[],
  isOthers: (address: Uint8Array) => boolean,
): Found[] {
  const found: Found[] = [];
  for (const name of namesIn(directory)) {
    const address = addressOfName(name);
    if (name.startsWith(".") || name.startsWith(CURSOR) || (address !== undefined && isOthers(address))) continue;
    const path = `${directory}/${name}`;
    const text = readState(path)?.trim();
    if (text === DIRECTORY) found.push(...findEverywhere(path, texts, isOthers));
    else if (text !== undefined && texts.includes(text)) found.push({ path, text });
  }
  return found;
}

/** Removes the file if it still says so. */
export function removeFound(directory: string, { path, text }: Found): boolean {
  return asGo(directory, () => readState(path)?.trim() === text && removeFile(path));
}

/** The address the range set gave out last, as text; undefined when that is not known. */
export function readCursor(directory: string, rangeId: string): string | undefined {
  return readState(cursorPath(directory, rangeId));
}

/** Notes where the round robin stands. Nothing depends on it but the order in which addresses are used. */
export function writeCursor(directory: string, rangeId: string, address: Uint8Array, before = ""): void {
  overwriteFile(cursorPath(directory, rangeId), formatAddress(address), before.length);
}

function cursorPath(directory: string, rangeId: string): string {
  return `${directory}/${CURSOR}${rangeId}`;
}
