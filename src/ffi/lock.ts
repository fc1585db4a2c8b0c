/**
 * Locks on open files, dropped by the kernel when the descriptor is closed or the process dies: flock(2) for a whole
 * file, open file description locks (fcntl(2)) for ranges of bytes. Both belong to the descriptor, so they also hold
 * between two users in one process.
 */
import { EACCES, EAGAIN, EINTR, SyscallError } from "./errno.ts";
import { bind, check, lastErrno, libc, retrying } from "./libc.ts";

// sys/file.h
const LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8;

/** Waits for a lock that others may share. Answers false on file systems without locks. */
export function lockShared(fd: number): boolean {
  return libc.flock(fd, LOCK_SH) === 0;
}

/** Waits until nobody else holds the file. */
export function lockExclusive(fd: number, subject?: string): void {
  retrying("flock", () => libc.flock(fd, LOCK_EX), subject);
}

/** Answers false when somebody else holds the file. A shared lock of ours becomes exclusive. */
export function tryLockExclusive(fd: number): boolean {
  return libc.flock(fd, LOCK_EX | LOCK_NB) === 0;
}

export function unlock(fd: number): void {
  libc.flock(fd, LOCK_UN);
}

const PATIENCE_MS = 10_000;
const FIRST_PAUSE_US = 100, LONGEST_PAUSE_US = 10_000;

/** Runs `work` with the file locked exclusively. Gives up after 10 s: whoever can open the file can lock it. */
export function whileLocked<T>(fd: number, subject: string, work: () => T): T {
  const deadline = Date.now() + PATIENCE_MS;
  for (let pauseUs = FIRST_PAUSE_US; !tryLockExclusive(fd);) {
    const errno = lastErrno();
    if (errno !== EAGAIN && errno !== EINTR) throw new SyscallError("flock", errno, subject);
    if (Date.now() > deadline) throw new SyscallError("flock", EAGAIN, `${subject}: held by another process`);
    bind({ usleep: { args: ["u32"], returns: "i32" } }).usleep(pauseUs);
    pauseUs = Math.min(pauseUs * 2, LONGEST_PAUSE_US);
  }
  try {
    return work();
  } finally {
    check("flock", libc.flock(fd, LOCK_UN), subject);
  }
}

// asm-generic/fcntl.h
const F_OFD_SETLK = 37, F_OFD_SETLKW = 38;
const F_RDLCK = 0, F_WRLCK = 1, F_UNLCK = 2;

/** Bytes of a file; they need not exist. */
export interface ByteRange {
  start: number;
  /** 1 unless given. 0 reaches to the end of every file. */
  length?: number;
}

const request = new Uint8Array(32);
const requestView = new DataView(request.buffer);

/** struct flock on 64-bit Linux: type i16, whence i16, start i64 at 8, len i64 at 16, pid i32 at 24. */
function setRangeLock(command: number, type: number, fd: number, { start, length = 1 }: ByteRange): number {
  requestView.setInt16(0, type, true);
  requestView.setUint32(8, start, true);
  requestView.setUint32(12, start / 2 ** 32, true);
  requestView.setUint32(16, length, true);
  return libc.fcntl(fd, command, request);
}

/** Answers false when somebody else holds one of the bytes. */
export function tryLockRangeExclusive(fd: number, range: ByteRange): boolean {
  if (setRangeLock(F_OFD_SETLK, F_WRLCK, fd, range) === 0) return true;
  const errno = lastErrno();
  if (errno === EAGAIN || errno === EACCES) return false;
  throw new SyscallError("fcntl F_OFD_SETLK", errno, `descriptor ${fd}`);
}

/** Waits until nobody else holds the range. A shared lock of ours becomes exclusive. */
export function lockRangeExclusive(fd: number, range: ByteRange): void {
  retrying("fcntl F_OFD_SETLKW", () => setRangeLock(F_OFD_SETLKW, F_WRLCK, fd, range));
}

/** Waits until nobody else holds the range exclusively. An exclusive lock of ours becomes shared. */
export function lockRangeShared(fd: number, range: ByteRange): void {
  retrying("fcntl F_OFD_SETLKW", () => setRangeLock(F_OFD_SETLKW, F_RDLCK, fd, range));
}

export function unlockRange(fd: number, range: ByteRange): void {
  check("fcntl F_OFD_SETLK", setRangeLock(F_OFD_SETLK, F_UNLCK, fd, range));
}
