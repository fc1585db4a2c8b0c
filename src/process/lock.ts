/**
 * Locks on open files, dropped by the kernel when the descriptor is closed or the process dies: flock(2) for a whole
 * file, open file description locks (fcntl(2)) for ranges of bytes. Both belong to the descriptor, so they also hold
 * between two users in one process.
 */
import { beforeWaitingFor } from "./patience.ts";
import { EACCES, EAGAIN, EINTR, SyscallError } from "../ffi/errno.ts";
import { throwIfInterrupted } from "./interruption.ts";
import { bindLater, check, lastErrno, libc } from "../ffi/libc.ts";
import { makeDirectories, O_DIRECTORY, O_RDONLY, openFile, whileOpen } from "../ffi/files.ts";
import { warn } from "./warn.ts";

// sys/file.h
const LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8;

/** No call holds a lock for so long, unless it hangs. */
const PATIENCE_MS = 300_000;
/** For files that everybody can open, and so lock. */
const PATIENCE_WITH_ALL_MS = 10_000;
/** The longest pause is short, and soon everybody's: otherwise those who have just come overtake who has waited long. */
const FIRST_PAUSE_US = 50, LONGEST_PAUSE_US = 1000;

/** The lock did not become free. */
export class StillLocked extends Error {}

/** Waits for a lock that others may share. Returns false on file systems without locks. */
export function lockShared(fd: number, patienceMs = PATIENCE_MS): boolean {
  try {
    untilFree(fd, undefined, patienceMs, () => tryLock(fd, LOCK_SH));
    return true;
  } catch (error) {
    if (error instanceof SyscallError) return false;
    throw error;
  }
}

/** Waits until nobody else holds the file. */
export function lockExclusive(fd: number, subject?: string, patienceMs = PATIENCE_MS): void {
  untilFree(fd, subject, patienceMs, () => tryLock(fd, LOCK_EX, subject));
}

/** Returns false when somebody else holds the file. A shared lock of ours becomes exclusive. */
export function tryLockExclusive(fd: number): boolean {
  return libc.flock(fd, LOCK_EX | LOCK_NB) === 0;
}

/** Returns false when somebody else holds the file exclusively. */
export function tryLockShared(fd: number): boolean {
  return libc.flock(fd, LOCK_SH | LOCK_NB) === 0;
}

export function unlock(fd: number): void {
  libc.flock(fd, LOCK_UN);
}

/** Runs `work` with the file locked exclusively. */
export function whileLocked<T>(fd: number, subject: string, work: () => T): T {
  lockExclusive(fd, subject, PATIENCE_WITH_ALL_MS);
  try {
    return work();
  } finally {
    check("flock", libc.flock(fd, LOCK_UN), subject);
  }
}

function tryLock(fd: number, operation: number, subject?: string): boolean {
  if (libc.flock(fd, operation | LOCK_NB) === 0) return true;
  const errno = lastErrno();
  if (errno === EAGAIN || errno === EINTR) return false;
  throw new SyscallError("flock", errno, subject);
}

const sleeping = bindLater({ usleep: { args: ["u32"], returns: "i32" } });

function untilFree(fd: number, subject: string | undefined, patienceMs: number, attempt: () => boolean): void {
  if (!isFreeWithin(patienceMs, attempt)) throw stillLocked(fd, subject, patienceMs);
}

/** Asks again and again: the kernel itself waits for a lock without end. */
function isFreeWithin(patienceMs: number, attempt: () => boolean): boolean {
  if (attempt()) return true;
  const begun = performance.now(), { usleep } = sleeping();
  for (let pauseUs = FIRST_PAUSE_US; !attempt(); pauseUs = Math.min(pauseUs * 2, LONGEST_PAUSE_US)) {
    throwIfInterrupted();
    if (performance.now() - begun > patienceMs) return false;
    usleep(pauseUs);
  }
  return true;
}

function stillLocked(fd: number, subject: string | undefined, patienceMs: number): StillLocked {
  const { fileOf, holderOf } = require("../ffi/lock-holder.ts") as typeof import("../ffi/lock-holder.ts");
  return new StillLocked(
    `${subject ?? fileOf(fd)}: locked by ${holderOf(fd)} for more than ${
      patienceMs / 1000
    } s; see what that waits for, ` +
      "or end it",
  );
}

// asm-generic/fcntl.h
const F_OFD_SETLK = 37;
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
function setRangeLock(type: number, fd: number, { start, length = 1 }: ByteRange): number {
  requestView.setInt16(0, type, true);
  requestView.setUint32(8, start, true);
  requestView.setUint32(12, start / 2 ** 32, true);
  requestView.setUint32(16, length, true);
  return libc.fcntl(fd, F_OFD_SETLK, request);
}

/** Returns false when somebody else holds one of the bytes. */
export function tryLockRangeExclusive(fd: number, range: ByteRange): boolean {
  return tryLockRange(fd, F_WRLCK, range);
}

function tryLockRange(fd: number, type: number, range: ByteRange): boolean {
  if (setRangeLock(type, fd, range) === 0) return true;
  const errno = lastErrno();
  if (errno === EAGAIN || errno === EACCES || errno === EINTR) return false;
  throw new SyscallError("fcntl F_OFD_SETLK", errno, `descriptor ${fd}`);
}

/** Waits until nobody else holds the range. A shared lock of ours becomes exclusive. */
export function lockRangeExclusive(fd: number, range: ByteRange, patienceMs = PATIENCE_MS): void {
  untilFree(fd, undefined, patienceMs, () => tryLockRange(fd, F_WRLCK, range));
}

/** Waits until nobody else holds the range exclusively. An exclusive lock of ours becomes shared. */
export function lockRangeShared(fd: number, range: ByteRange, patienceMs = PATIENCE_MS): void {
  untilFree(fd, undefined, patienceMs, () => tryLockRange(fd, F_RDLCK, range));
}

export function unlockRange(fd: number, range: ByteRange): void {
  check("fcntl F_OFD_SETLK", setRangeLock(F_UNLCK, fd, range));
}

/** As long as a setup of another worker takes. */
const WORKER_PATIENCE_MS = 50;

/** Waits for programs of others. A worker of a resident waits a moment, and leaves the call then; `reason` says for what. */
export function lockWithOthers(fd: number, path: string, reason: string): void {
  if (isFreeWithin(WORKER_PATIENCE_MS, () => tryLock(fd, LOCK_EX, path))) return;
  beforeWaitingFor(reason);
  lockExclusive(fd, path);
}

/**
 * Runs `work` while nobody else has the directory itself, so that no lock file is left behind. netavark locks that of
 * --config: podman calls it for one container at a time, other programs may not, and whether a network's last container
 * leaves is only known while no other one comes.
 */
export function whileDirectoryLocked<T>(directory: string, work: () => T): T {
  return withDirectory(directory, (fd) => lockWithOthers(fd, directory, "netavark's lock"), work);
}

/** The same for a directory that everybody may open, and so lock: after some seconds the work goes on without. */
export function whileDirectoryLockedIfPossible<T>(directory: string, work: () => T): T {
  return withDirectory(directory, (fd) => lockOrWarn(fd, directory), work);
}

function withDirectory<T>(directory: string, lock: (fd: number) => void, work: () => T): T {
  makeDirectories(directory, 0o755);
  return whileOpen(openFile(directory, O_RDONLY | O_DIRECTORY), (fd) => {
    lock(fd);
    return work();
  });
}

function lockOrWarn(fd: number, subject: string): void {
  try {
    lockExclusive(fd, subject, PATIENCE_WITH_ALL_MS);
  } catch (error) {
    warn(`goes on without the lock: ${(error as Error).message}`);
  }
}
