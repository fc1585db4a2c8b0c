/**
 * Locks between operations (CNI spec 1.1.0, "Lifecycle & Ordering"): two operations on one container never overlap, and
 * GC overlaps with nothing.
 *
 * They are record locks on a file in the cache directory: a container's lock is one byte, at an offset made from its ID;
 * GC's lock is the whole file. The kernel drops the locks of a process that dies (fcntl(2), "Open file description
 * locks"). Other engines do not take them.
 */
import { forgetAfterCall, isHandedOver, leaveToCaller } from "../process/calls.ts";
import { SyscallError } from "../ffi/errno.ts";
import { closeFile, makeDirectories } from "../ffi/files.ts";
import { type ByteRange, lockRangeExclusive, tryLockRangeExclusive } from "../process/lock.ts";
import { openStateLock } from "../process/state-file.ts";
import { warn } from "../process/warn.ts";
import type { Runtime } from "./plugin-call.ts";

type WithCache = Pick<Runtime, "cacheDirectory">;

export function withContainerLocked<T>({ cacheDirectory }: WithCache, containerId: string, work: () => T): T {
  return withLock(cacheDirectory, { start: containerNumber(containerId) }, `container "${containerId}"`, work);
}

export function withAllLocked<T>({ cacheDirectory }: WithCache, work: () => T): T {
  return withLock(cacheDirectory, { start: 0, length: 0 }, "the containers of this host", work);
}

function withLock<T>(directory: string, range: ByteRange, what: string, work: () => T): T {
  const path = `${directory}/.patchbay.lock`;
  let fd: number | undefined;
  try {
    makeDirectories(directory);
    fd = openStateLock(path);
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    // In a directory that cannot be written, ADD will fail when it writes the cache, and DEL must still work.
    return work();
  }
  if (fd === undefined) return work();
  try {
    lock(fd, range, what);
    return work();
  } finally {
    closeFile(fd);
  }
}

/** This call has had a lock, so it may have changed something. */
let hasHadLock = false;
forgetAfterCall(() => hasHadLock = false);

function lock(fd: number, range: ByteRange, what: string): void {
  if (tryLock(fd, range)) {
    hasHadLock = true;
    return;
  }
  // There the user sees that it waits, and may interrupt it.
  if (isHandedOver() && !hasHadLock) leaveToCaller("another operation");
  warn(`waiting for another operation on ${what} to end`);
  lockRangeExclusive(fd, range);
}

function tryLock(fd: number, range: ByteRange): boolean {
  try {
    return tryLockRangeExclusive(fd, range);
  } catch (error) {
    if (error instanceof SyscallError) return true; // This file system has no locks.
    throw error;
  }
}

/** FNV-1a. Two containers with the same number wait for each other, which does no harm. */
export function containerNumber(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}
