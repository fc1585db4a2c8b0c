/**
 * The lease store of one network: the lease files (go-directory.ts), and beside them, in `.patchbay`, an index that
 * makes finding a free address, and an owner's addresses, cost the same with ten leases and with sixty thousand.
 *
 *     .patchbay/locks            never written; its bytes are locked (fcntl(2), open file description locks)
 *     .patchbay/10.88.0.0-16     the index of one block of addresses (blocks.ts, layout.ts)
 *
 * Two rules keep index and files together. Who works on the network shares byte 0; who makes, replaces or repairs
 * blocks has it alone. And who adds or releases leases of an owner holds the byte numbered by the owner's tag, so that
 * two processes never work for one owner at once. The kernel drops the locks of a process that dies: what it had begun
 * is then anybody's to finish. docs/lease-store.md has the whole argument.
 */
import { EACCES, EROFS, isErrno } from "../ffi/errno.ts";
import { closeFile, makeDirectories, O_CREAT, O_NOFOLLOW, O_RDWR, openExisting, openFile } from "../ffi/files.ts";
import { lockRangeExclusive, lockRangeShared, unlockRange } from "../ffi/lock.ts";
import { unmap } from "../ffi/mapped-file.ts";
import { type LeaseOwner, leaseText } from "./go-directory.ts";
import type { Block } from "./layout.ts";

export interface StoreOptions {
  /** `<dataDir>/<network>` */
  readonly directory: string;
  /** Whether leases outlive a reboot; then they are also made durable. */
  readonly keep: boolean;
  /** For how long a released address is not given out again, unless it is requested. */
  readonly quarantineSeconds: number;
  /** Takes one line for the operator. */
  report(note: string): void;
}

/** The store while one process works on it: see `inStore`. */
export interface Store extends StoreOptions {
  readonly locksFd: number;
  alone: boolean;
  /** The blocks opened so far, by name. */
  readonly blocks: Map<string, Block>;
  /** All that is mapped, also what is out of date: a view of it may still be in somebody's hands. */
  readonly mappings: ArrayBuffer[];
}

/** Whose lease it is: the text of its file, and the number that stands for it in the index and among the locks. */
export interface Lease {
  readonly text: string;
  readonly tag: number;
}

export function leaseOf(owner: LeaseOwner): Lease {
  const text = leaseText(owner);
  return { text, tag: tagOf(text) };
}

/** By FNV's prime, 2^24 + 403, in 32 bits. `Math.imul` would do, but the first use of `Math` costs 40 µs. */
function timesPrime(value: number): number {
  return ((value << 24) + value * 403) | 0;
}

/** FNV-1a, but never 0, which stands for a free address. Different texts may have the same: the file decides. */
export function tagOf(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let index = 0; index < text.length; index++) hash = timesPrime(hash ^ text.charCodeAt(index));
  return hash || 1;
}

/** Bytes of the locks file; those between are the owners' tags. */
const IN_USE = { start: 0 }, CURSORS = { start: 2 ** 32 };

/** Works on the store, which is made if need be. `lease` is the one to be added. */
export function inStore<T>(options: StoreOptions, lease: Lease | undefined, work: (store: Store) => T): T {
  return withLocks(options, openLocks(options.directory, true)!, lease, work);
}

/** Works on the store if there is one and it can be written to; otherwise on nothing but the lease files. */
export function inExistingStore<T>(
  options: StoreOptions,
  lease: Lease | undefined,
  work: (store: Store | undefined) => T,
): T {
  const locksFd = openLocks(options.directory, false);
  return locksFd === undefined ? work(undefined) : withLocks(options, locksFd, lease, work);
}

function withLocks<T>(
  options: StoreOptions,
  locksFd: number,
  lease: Lease | undefined,
  work: (store: Store) => T,
): T {
  const { directory, keep, quarantineSeconds, report } = options;
  const mappings: ArrayBuffer[] = [];
  try {
    // In this order: who waits for an owner must not keep others from having the store alone.
    if (lease !== undefined) lockRangeExclusive(locksFd, { start: lease.tag >>> 0 });
    lockRangeShared(locksFd, IN_USE);
    return work({ directory, keep, quarantineSeconds, report, locksFd, alone: false, blocks: new Map(), mappings });
  } finally {
    for (const mapping of mappings) unmap(mapping);
    closeFile(locksFd);
  }
}

export function indexDirectory(directory: string): string {
  return `${directory}/.patchbay`;
}

function openLocks(directory: string, create: boolean): number | undefined {
  const path = `${indexDirectory(directory)}/locks`;
  try {
    const fd = openExisting(path, O_RDWR | O_NOFOLLOW);
    if (fd !== undefined || !create) return fd;
  } catch (error) {
    // DEL of what was never leased must succeed where nothing can be written.
    if (!create && isErrno(error, EROFS, EACCES)) return undefined;
    throw error;
  }
  makeDirectories(directory, 0o755);
  makeDirectories(indexDirectory(directory), 0o700);
  return openFile(path, O_RDWR | O_NOFOLLOW | O_CREAT);
}

/** For the moment in which it writes down how far the round robin is, one process keeps the others waiting. */
export function atCursor(store: Store, work: () => void): void {
  lockRangeExclusive(store.locksFd, CURSORS);
  try {
    work();
  } finally {
    unlockRange(store.locksFd, CURSORS);
  }
}

/** Waits until nobody else works on the network. Blocks from before may be out of date then: ask for them again. */
export function alone<T>(store: Store, work: () => T): T {
  if (store.alone) return work();
  // Two that share the byte and wait to have it alone would wait for each other: hence the moment without it.
  unlockRange(store.locksFd, IN_USE);
  lockRangeExclusive(store.locksFd, IN_USE);
  store.blocks.clear();
  store.alone = true;
  try {
    return work();
  } finally {
    store.alone = false;
    lockRangeShared(store.locksFd, IN_USE);
  }
}
