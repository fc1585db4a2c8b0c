/**
 * The lease store of one network: the lease files (go-directory.ts), and beside them, in `.patchbay`, an index. With it,
 * finding a free address or an owner's addresses takes the same time with ten leases and with sixty thousand.
 *
 *     .patchbay/locks            never written; processes lock bytes of it (process/lock.ts)
 *     .patchbay/10.88.0.0-16     the index of one block of addresses (blocks.ts, layout.ts)
 *
 * Two rules keep index and files consistent. A process that works on the network locks byte 0 shared; to make, replace
 * or repair blocks, it locks byte 0 exclusively. A process that adds or releases leases of an owner locks the byte whose
 * number is the owner's tag, so that two processes never work for one owner at once. The kernel drops the locks of a
 * process that dies; then any process can finish its work. docs/lease-store.md has the whole argument.
 */
import { whyNoBootId } from "../ffi/boot.ts";
import { EACCES, ENOENT, EROFS, isErrno } from "../ffi/errno.ts";
import { closeFile, identify, makeDirectories, O_CREAT, O_RDWR } from "../ffi/files.ts";
import { lockRangeExclusive, lockRangeShared, unlockRange } from "../process/lock.ts";
import { unmap } from "../ffi/memory.ts";
import {
  judgeStateDirectory,
  openExistingState,
  openStateFile,
  tryStateDirectory,
  UntrustedState,
} from "../process/state-file.ts";
import { type LeaseOwner, leaseText } from "./go-directory.ts";
import type { Block } from "./layout.ts";

export interface StoreOptions {
  /** `<dataDir>/<network>` */
  readonly directory: string;
  /** Whether leases outlive a reboot; then they are also synced to disk. */
  readonly keep: boolean;
  /** For how long a released address is not allocated again, unless it is requested. */
  readonly quarantineSeconds: number;
  /** Prints one line for the operator. */
  report(note: string): void;
  /** Before the directory is made: throws when there is nothing to lease. */
  beforeMaking?(): void;
  /** How long to wait for another process that has a lock; minutes, unless somebody has something else to do. */
  readonly patienceMs?: number;
}

/** The store while this process works on it: see `inStore`. */
export interface Store extends StoreOptions {
  readonly locksFd: number;
  /** Whether byte 0 is locked exclusively. */
  isExclusive: boolean;
  /** How often this process has let go of byte 0 meanwhile: others may have had it alone. */
  lapses: number;
  /** The blocks opened so far, by name. */
  readonly blocks: Map<string, Block>;
  /** Everything mapped, outdated blocks included: callers may still hold views of them. */
  readonly mappings: ArrayBuffer[];
}

/** An owner's lease: the content of its file, and the number of the owner in the index and among the locks. */
export interface StoredLease {
  readonly text: string;
  readonly tag: number;
}

export function leaseOf(owner: LeaseOwner): StoredLease {
  const text = leaseText(owner);
  return { text, tag: tagOf(text) };
}

/** Multiplies by FNV's prime, 2^24 + 403, in 32 bits. The first use of `Math` (`Math.imul`) would cost 40 µs. */
function timesPrime(value: number): number {
  return ((value << 24) + value * 403) | 0;
}

/** FNV-1a, but never 0, which means a free address. Texts may share a tag: the lease file decides. */
export function tagOf(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let index = 0; index < text.length; index++) hash = timesPrime(hash ^ text.charCodeAt(index));
  return hash || 1;
}

/** Bytes of the locks file; the bytes between them are the owners' tags. */
const IN_USE = { start: 0 }, CURSORS = { start: 2 ** 32 };

/**
 * Works on the store, and makes it if there is none. `lease` is the one to be added. `work` may run again: see
 * `untilPresent`.
 */
export function inStore<T>(options: StoreOptions, lease: StoredLease | undefined, work: (store: Store) => T): T {
  return untilPresent(options, true, lease, (store) => work(store!));
}

/** Works on the store if it exists and is writable; otherwise on the lease files only. */
export function inExistingStore<T>(
  options: StoreOptions,
  lease: StoredLease | undefined,
  work: (store: Store | undefined) => T,
): T {
  // The index is of one boot. The files say whose leases they are, so they can be released without it.
  const obstacle = whyNoBootId();
  if (obstacle === undefined) return untilPresent(options, false, lease, work);
  options.report(`the lease index is left out: ${obstacle}`);
  return work(undefined);
}

const ATTEMPTS = 100;

/**
 * `ipam export` and `network remove` remove the index, with the file of locks that others have open. A process that
 * holds a lock of a file without a name excludes nobody, and begins again.
 */
function untilPresent<T>(
  options: StoreOptions,
  create: boolean,
  lease: StoredLease | undefined,
  work: (store: Store | undefined) => T,
): T {
  for (let attempt = 1;; attempt++) {
    const locksFd = openLocks(options, create);
    if (locksFd === undefined) return work(undefined);
    try {
      return withLocks(options, locksFd, lease, work);
    } catch (error) {
      if (isNamed(locksFd) || attempt === ATTEMPTS) throw error;
    } finally {
      closeFile(locksFd);
    }
  }
}

function isNamed(fd: number): boolean {
  try {
    return identify(fd).links > 0;
  } catch {
    return true;
  }
}

function requireNamed({ directory, locksFd }: Pick<Store, "directory" | "locksFd">): void {
  if (!isNamed(locksFd)) throw new Error(`${indexDirectory(directory)} was removed again and again`);
}

function withLocks<T>(
  options: StoreOptions,
  locksFd: number,
  lease: StoredLease | undefined,
  work: (store: Store) => T,
): T {
  const mappings: ArrayBuffer[] = [];
  try {
    // In this order: a process that waits for an owner must not delay the exclusive lock of others.
    if (lease !== undefined) lockRangeExclusive(locksFd, { start: lease.tag >>> 0 }, options.patienceMs);
    lockRangeShared(locksFd, IN_USE, options.patienceMs);
    requireNamed({ directory: options.directory, locksFd });
    return work({ ...options, locksFd, isExclusive: false, lapses: 0, blocks: new Map(), mappings });
  } finally {
    for (const mapping of mappings) unmap(mapping);
  }
}

/** For STATUS: throws when no lease could be kept. Changes nothing. */
export function requireStore(directory: string): void {
  const index = indexDirectory(directory), obstacle = whyNoBootId();
  if (obstacle !== undefined) throw new Error(obstacle);
  judgeStateDirectory(index);
  tryStateDirectory(index);
}

export function indexDirectory(directory: string): string {
  return `${directory}/.patchbay`;
}

/** It is there when the network's leases have gone to a pool: moved-leases.ts. */
export function movedPath(directory: string): string {
  return `${indexDirectory(directory)}/moved`;
}

function openLocks(options: StoreOptions, create: boolean): number | undefined {
  const { directory, report } = options, path = `${indexDirectory(directory)}/locks`;
  try {
    const locks = openExistingState(path, O_RDWR);
    if (locks !== undefined || !create) return locks?.fd;
  } catch (error) {
    if (create) throw error;
    // DEL of an attachment without leases must succeed on a read-only file system.
    if (isErrno(error, EROFS, EACCES)) return undefined;
    if (!(error instanceof UntrustedState)) throw error;
    report(`the lease index is left out: ${error.message}`);
    return undefined;
  }
  options.beforeMaking?.();
  for (let attempt = 1;; attempt++) {
    try {
      makeDirectories(directory, 0o755);
      makeDirectories(indexDirectory(directory), 0o700);
      judgeStateDirectory(indexDirectory(directory));
      return openStateFile(path, O_RDWR | O_CREAT).fd;
    } catch (error) {
      // A directory may be removed before the next thing is in it.
      if (!isErrno(error, ENOENT) || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Runs `work`, which records how far the round robin is, in one process at a time. */
export function atCursor(store: Store, work: () => void): void {
  lockRangeExclusive(store.locksFd, CURSORS);
  try {
    work();
  } finally {
    unlockRange(store.locksFd, CURSORS);
  }
}

/** Runs `work` while no other process works on the network. Blocks opened before may be outdated: open them again. */
export function exclusively<T>(store: Store, work: () => T): T {
  if (store.isExclusive) return work();
  // Give up the shared lock first: two processes that upgrade it would wait for each other.
  store.lapses++;
  unlockRange(store.locksFd, IN_USE);
  lockRangeExclusive(store.locksFd, IN_USE, store.patienceMs);
  requireNamed(store);
  store.blocks.clear();
  store.isExclusive = true;
  try {
    return work();
  } finally {
    store.isExclusive = false;
    lockRangeShared(store.locksFd, IN_USE);
  }
}
