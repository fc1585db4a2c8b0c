/**
 * Which operations may overlap (CNI spec 1.1.0, "Lifecycle & Ordering"): never two on one container, and none at all
 * while a network is garbage-collected.
 *
 * One file under the cache directory; each container is one byte of it, far apart, and GC is the whole. The kernel
 * drops the locks of a process that dies (fcntl(2), "Open file description locks"). Other engines know nothing of it.
 */
import { EACCES, EAGAIN, SyscallError } from "../ffi/errno.ts";
import { closeFile, makeDirectories, O_CREAT, O_NOFOLLOW, O_RDWR, openFile } from "../ffi/files.ts";
import { bind, lastErrno, retrying } from "../ffi/libc.ts";
import { warn } from "../ffi/warn.ts";

const F_OFD_SETLK = 37;
const F_OFD_SETLKW = 38;
const F_WRLCK = 1;

export function withContainerLocked<T>(cacheDirectory: string, containerId: string, work: () => T): T {
  return withLock(
    cacheDirectory,
    { start: BigInt(hash(containerId)), length: 1n },
    `container "${containerId}"`,
    work,
  );
}

export function withAllLocked<T>(cacheDirectory: string, work: () => T): T {
  return withLock(cacheDirectory, { start: 0n, length: 0n }, "the containers of this host", work);
}

function withLock<T>(directory: string, range: { start: bigint; length: bigint }, what: string, work: () => T): T {
  const path = `${directory}/.patchbay.lock`;
  let fd: number;
  try {
    makeDirectories(directory);
    fd = openFile(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    // A directory that cannot be written is ADD's error to report, and no reason not to delete.
    return work();
  }
  try {
    lock(fd, range, what, path);
    return work();
  } finally {
    closeFile(fd);
  }
}

function lock(fd: number, range: { start: bigint; length: bigint }, what: string, path: string): void {
  const { fcntl } = bind({ fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" } });
  const flock = new DataView(new ArrayBuffer(32)); // struct flock; a length of 0 reaches to the end of every file
  flock.setInt16(0, F_WRLCK, true);
  flock.setBigInt64(8, range.start, true);
  flock.setBigInt64(16, range.length, true);
  const bytes = new Uint8Array(flock.buffer);
  if (fcntl(fd, F_OFD_SETLK, bytes) === 0) return;
  const errno = lastErrno();
  if (errno !== EAGAIN && errno !== EACCES) return; // a file system without locks
  warn(`waiting for another operation on ${what} to end`);
  retrying("lock", () => fcntl(fd, F_OFD_SETLKW, bytes), path);
}

/** FNV-1a. Two containers with the same value only wait for one another. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}
