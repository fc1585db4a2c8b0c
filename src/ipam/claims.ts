/**
 * Claiming and releasing addresses: lease file and index slot change in an order that is recoverable when the process dies
 * between any two steps (docs/lease-store.md, "Crash table").
 */
import { secondsSinceBoot } from "../ffi/clock.ts";
import { syncDirectory } from "../ffi/files.ts";
import { contains, parseAddress } from "../net/address.ts";
import { existingBlocks, removeEmpty, settleAll } from "./blocks.ts";
import {
  createLease,
  findEverywhere,
  hasGoLock,
  leasedAddresses,
  type LeaseOwner,
  leaseOwnerIn,
  leaseText,
  readLease,
  removeFound,
  removeLease,
} from "./go-directory.ts";
import { addressAt, type Block, CLAIMING, indexIn, keepsLeases } from "./layout.ts";
import {
  exclusively,
  inExistingStore,
  leaseOf,
  type Store,
  type StoredLease,
  type StoreOptions,
  tagOf,
} from "./store.ts";

/**
 * Claims the address for the lease; answers false when it is taken. One of two processes wins the exchange; one of
 * two programs makes the file. Undoes everything before it throws.
 */
export function claim(store: Store, block: Block, index: number, lease: StoredLease): boolean {
  const { slots, times, prefix } = block;
  if (Atomics.compareExchange(slots, index, 0, lease.tag) !== 0) return false;
  const address = addressAt(prefix, index);
  const releasedAt = Atomics.exchange(times, index, CLAIMING);
  let holder: string | undefined;
  try {
    if (createLease(store.directory, address, lease.text, store.keep)) {
      Atomics.store(times, index, 0);
      return true;
    }
    holder = readLease(store.directory, address);
  } catch (error) {
    Atomics.store(times, index, releasedAt);
    Atomics.store(slots, index, 0);
    throw error;
  }
  // The file was made by Go's plugin or by hand, or when the network had other blocks.
  Atomics.store(times, index, 0);
  Atomics.store(slots, index, holder === undefined ? 0 : tagOf(holder));
  return false;
}

/** Frees the address if the lease has it. Removes the file first: then any process can finish the rest. */
export function unclaim(store: Store, block: Block, index: number, lease: StoredLease): boolean {
  const address = addressAt(block.prefix, index);
  let found = removeLease(store.directory, address, lease.text);
  if (found === "") found = exclusively(store, () => removeEmpty(store, address));
  if (found === lease.text && keepsLeases(block)) syncDirectory(store.directory);
  const isFree = found === undefined || found === lease.text;
  const restsFrom = isFree && store.quarantineSeconds > 0 ? secondsSinceBoot() : 0;
  if (block.times[index] !== restsFrom) Atomics.store(block.times, index, restsFrom);
  Atomics.compareExchange(block.slots, index, lease.tag, isFree ? 0 : tagOf(found!));
  return found === lease.text;
}

/**
 * Releases every lease of the owner and answers their number. `hints` are the addresses it should have. Like Go's plugin,
 * searches all lease files, but only when the index does not know the owner, or when Go's plugin has been here and there
 * are no hints.
 */
export function releaseAddresses(options: StoreOptions, owner: LeaseOwner, hints: readonly Uint8Array[]): number {
  const lease = leaseOf(owner);
  return inExistingStore(options, lease, (store) => {
    const blocks = store === undefined ? [] : existingBlocks(store);
    const goWasHere = hasGoLock(options.directory);
    const released = releaseKnown(options, store, blocks, lease, hints);
    if (released > 0 && (!goWasHere || hints.length > 0)) return released;
    // Very old lease files name only the container. They count when no file names the interface as well.
    const old = leaseOf({ containerId: owner.containerId });
    const known = released > 0 ? released : releaseKnown(options, store, blocks, old, hints);
    if (known > 0 && !goWasHere) return known;
    return known + releaseUnknown(options.directory, goWasHere ? [] : blocks, known > 0 ? [lease] : [lease, old]);
  });
}

function releaseKnown(
  { directory }: StoreOptions,
  store: Store | undefined,
  blocks: readonly Block[],
  lease: StoredLease,
  hints: readonly Uint8Array[],
): number {
  let released = 0;
  for (const block of blocks) {
    for (let index = -1; (index = block.slots.indexOf(lease.tag, index + 1)) >= 0;) {
      if (unclaim(store!, block, index, lease)) released++;
    }
  }
  for (const hint of hints) if (removeLease(directory, hint, lease.text) === lease.text) released++;
  return released;
}

/** Searches the lease files; does not read those that belong to others according to `blocks`. */
function releaseUnknown(directory: string, blocks: readonly Block[], leases: readonly StoredLease[]): number {
  const isOthers = (address: Uint8Array) => {
    const block = blocks.find(({ prefix }) => contains(prefix, address));
    const slot = block === undefined ? 0 : block.slots[indexIn(block.prefix, address)];
    return slot !== 0 && leases.every(({ tag }) => tag !== slot);
  };
  const found = findEverywhere(directory, leases.map(({ text }) => text), isOthers);
  for (const { text } of leases) {
    const removed = found.filter((each) => each.text === text && removeFound(directory, each)).length;
    if (removed > 0) return removed;
  }
  return 0;
}

/** Whether the owner has a lease that `releaseAddresses` would find. */
export function holdsLease({ directory }: StoreOptions, owner: LeaseOwner, hints: readonly Uint8Array[]): boolean {
  const texts = [leaseText(owner), owner.containerId];
  const isOwners = (address: Uint8Array) => texts.includes(readLease(directory, address) ?? "");
  return hints.some(isOwners) || findEverywhere(directory, texts, () => false).length > 0;
}

/**
 * Releases the leases of attachments that are not valid, except for leases that name no interface, and in a directory that
 * networks share those of the others.
 */
export function releaseInvalid(
  options: StoreOptions,
  isValid: (owner: { containerId: string; ifName: string }) => boolean,
  network?: string,
): void {
  const { directory } = options;
  const collect = (store: Store | undefined, blocks: readonly Block[]) => {
    for (const address of leasedAddresses(directory)) {
      const text = readLease(directory, address) ?? "";
      const { containerId, ifName, inNetwork } = leaseOwnerIn(text) ?? {};
      if (containerId === undefined || ifName === undefined || inNetwork !== network) continue;
      if (isValid({ containerId, ifName })) continue;
      releaseFile(directory, store, blocks, address, text);
    }
  };
  inExistingStore(options, undefined, (store) => {
    if (store === undefined) return collect(undefined, []);
    exclusively(store, () => {
      const blocks = existingBlocks(store);
      collect(store, blocks);
      settleAll(store, blocks);
    });
  });
}

/** Releases the address whoever has it, unless that has changed since `text` was read from the lease's file. */
export function releaseLease(options: StoreOptions, { address, text }: { address: string; text: string }): boolean {
  const { directory } = options;
  return inExistingStore(options, { text, tag: tagOf(text) }, (store) => {
    const blocks = store === undefined ? [] : existingBlocks(store);
    return releaseFile(directory, store, blocks, parseAddress(address)!, text);
  });
}

function releaseFile(
  directory: string,
  store: Store | undefined,
  blocks: readonly Block[],
  address: Uint8Array,
  text: string,
): boolean {
  const block = blocks.find(({ prefix }) => contains(prefix, address));
  if (store === undefined || block === undefined) return removeLease(directory, address, text) === text;
  return unclaim(store, block, indexIn(block.prefix, address), { text, tag: tagOf(text) });
}
