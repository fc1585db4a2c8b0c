/**
 * Which address an owner gets: the requested one, or round robin through the ranges of the set, the next free one after
 * the address allocated last. Order and error texts are those of the reference host-local plugin.
 */
import { CniError, INTERNAL, TRY_AGAIN_LATER } from "../cni/error.ts";
import { secondsSinceBoot } from "../ffi/clock.ts";
import { compareAddresses, contains, formatAddress, lastOf, nextAddress, type Prefix } from "../net/address.ts";
import { leasedAddresses, readCursor, readLease } from "./go-directory.ts";
import { addressAt, type Block, blockPrefix, indexIn, setKeepsLeases } from "./layout.ts";
import { capacityOf, formatRangeSet, isInRange, type Range, rangeOf, type RangeSet } from "./range.ts";
import { blockAt, existingBlocks, settle, settleAll } from "./blocks.ts";
import { claim, unclaim } from "./claims.ts";
import { noteCursor, type Stretch, stretchesAfter } from "./round-robin.ts";
import { exclusively, leaseOf, type Store, type StoredLease } from "./store.ts";

export interface AllocationRequest {
  set: RangeSet;
  /** The number of the set in the configuration, which is part of the name of its `last_reserved_ip` file. */
  rangeId: string;
  lease: StoredLease;
  containerId: string;
  /** An address of the set, or undefined for any. */
  requested: Uint8Array | undefined;
  /** For a set whose ranges another process may take away. */
  passing?: PassingSet;
}

/**
 * A range is taken away like this: first it is written down that it is gone, then its leases are counted with byte 0 alone
 * (`leasedExclusively`). So the set is read while byte 0 is locked, and after a lapse nothing is claimed until it was read again.
 */
export interface PassingSet {
  /** The store's, when the set was read. */
  lapses: number;
  /** The request with the set as it is now; undefined when none of its ranges is there any more. */
  readAgain(): AllocationRequest | undefined;
  /** Why none of it is given, or not this address, in place of the reference plugin's words. */
  refusal(address: Uint8Array | undefined): Error;
}

export interface Allocated {
  address: Uint8Array;
  range: Range;
}

/** Claims an address. Throws the reference plugin's error when there is none. */
export function allocate(store: Store, request: AllocationRequest): Allocated {
  return request.requested === undefined
    ? allocateNext(store, request)
    : allocateRequested(store, request, request.requested);
}

function allocateRequested(store: Store, request: AllocationRequest, address: Uint8Array): Allocated {
  const first = rangeOf(request.set, address)!, { passing } = request;
  if (isGateway(first, address)) throw refusal(gatewayText(address));
  blocksOf(store, first);
  const attempt = (asked: AllocationRequest, isSettled: boolean): Allocated | undefined => {
    const range = rangeOf(asked.set, address);
    if (range === undefined) return undefined;
    const block = blockAt(store, prefixIn(range, address), true);
    const index = indexIn(block.prefix, address);
    if (isSettled) settle(store, block, index);
    return !isOutdated(store, asked) && claim(store, block, index, asked.lease) ? { address, range } : undefined;
  };
  let used: AllocationRequest | undefined = request;
  const allocated = attempt(request, false) ?? exclusively(store, () => {
    used = readAgain(request);
    return used && attempt(used, true);
  });
  if (allocated === undefined) throw passing?.refusal(address) ?? refusal(leasedText(address, request.set));
  noteCursor(store, used, readCursor(store.directory, request.rangeId), allocated);
  return allocated;
}

function isOutdated({ lapses }: Store, { passing }: AllocationRequest): boolean {
  return passing !== undefined && passing.lapses !== lapses;
}

function readAgain(request: AllocationRequest): AllocationRequest | undefined {
  return request.passing === undefined ? request : request.passing.readAgain();
}

function isGateway({ gateway }: Range, address: Uint8Array): boolean {
  return gateway !== undefined && compareAddresses(address, gateway) === 0;
}

/** The prefix of the block that contains this address of the range. */
function prefixIn({ subnet, within = subnet }: Range, address: Uint8Array): Prefix {
  return blockPrefix(within, address);
}

function gatewayText(address: Uint8Array): string {
  return `requested ip ${formatAddress(address)} is subnet's gateway`;
}

function leasedText(address: Uint8Array, set: RangeSet): string {
  return `requested IP address ${formatAddress(address)} is not available in range set ${formatRangeSet(set)}`;
}

/** Why `allocate` would refuse the address of the set, according to the lease files; undefined when it would not. */
export function whyNotAvailable(directory: string, set: RangeSet, address: Uint8Array): string | undefined {
  if (isGateway(rangeOf(set, address)!, address)) return gatewayText(address);
  return readLease(directory, address) === undefined ? undefined : leasedText(address, set);
}

function allocateNext(store: Store, request: AllocationRequest): Allocated {
  const { rangeId } = request;
  rejectSecond(store, request);
  const last = readCursor(store.directory, rangeId);
  let used: AllocationRequest | undefined = request;
  const found = search(store, request, last) ?? exclusively(store, () => {
    used = readAgain(request);
    settleAll(store, existingBlocks(store));
    return used && search(store, used, last);
  });
  if (found === undefined) throw request.passing?.refusal(undefined) ?? exhausted(store, request.set);
  noteCursor(store, used, last, found);
  return found;
}

/** An attachment has one address of each set (CNI spec 1.1.0, "ADD": not twice without DEL in between). */
function rejectSecond(store: Store, { set, lease, containerId }: AllocationRequest): void {
  // Very old lease files name only the container.
  const old = leaseOf({ containerId });
  let within: Prefix | undefined;
  for (const range of set) {
    if (range.within !== undefined && range.within === within) continue;
    within = range.within;
    for (const block of blocksOf(store, range)) {
      rejectHeld(store, block, range, lease, containerId);
      rejectHeld(store, block, range, old, containerId);
    }
  }
}

function rejectHeld(store: Store, block: Block, range: Range, lease: StoredLease, containerId: string): void {
  for (let index = -1; (index = block.slots.indexOf(lease.tag, index + 1)) >= 0;) {
    const address = addressAt(block.prefix, index);
    if (range.within === undefined && !isInRange(range, address)) continue;
    const text = readLease(store.directory, address);
    // The file was removed by hand, or never written.
    if (text === undefined) unclaim(store, block, index, lease);
    if (text !== lease.text) continue;
    throw refusal(
      `${formatAddress(address)} has been allocated to ${containerId}, duplicate allocation is not allowed`,
    );
  }
}

/** The range's block; for a larger range, the blocks that exist. */
function blocksOf(store: Store, range: Range): Block[] {
  const { start, within: subnet = range.subnet } = range, prefix = blockPrefix(subnet, start);
  if (prefix.bits === subnet.bits) return [blockAt(store, prefix, true)];
  const blocks = existingBlocks(store, subnet);
  if (blocks.length > 0) return blocks;
  // The range is new to the index, but Go's plugin may have leases in it.
  for (const address of leasedAddresses(store.directory)) {
    if (contains(subnet, address)) blockAt(store, blockPrefix(subnet, address), true);
  }
  return existingBlocks(store, subnet);
}

/** Tries every address of the set once, in order, starting after `last`. */
function search(store: Store, request: AllocationRequest, last: string | undefined): Allocated | undefined {
  for (const stretch of stretchesAfter(request.set, last)) {
    const found = searchIn(store, request, stretch);
    if (found !== undefined) return found;
    if (isOutdated(store, request)) return undefined;
  }
  return undefined;
}

function searchIn(store: Store, request: AllocationRequest, { range, from, to }: Stretch): Allocated | undefined {
  for (let address = from; compareAddresses(address, to) <= 0;) {
    const block = blockAt(store, prefixIn(range, address), true);
    if (isOutdated(store, request)) return undefined;
    const blockEnd = lastOf(block.prefix);
    const isLast = compareAddresses(blockEnd, to) >= 0;
    const toIndex = indexIn(block.prefix, isLast ? to : blockEnd);
    const index = claimBetween(store, block, indexIn(block.prefix, address), toIndex, range, request.lease);
    if (index >= 0) return { address: addressAt(block.prefix, index), range };
    if (isLast) break;
    address = nextAddress(blockEnd);
  }
  return undefined;
}

/** Claims the first free address. `indexOf` is native: a loop over 65,536 words would take longer than all the rest. */
function claimBetween(
  store: Store,
  block: Block,
  from: number,
  to: number,
  range: Range,
  lease: StoredLease,
): number {
  const { slots, prefix } = block;
  const isResting = restingIn(store, block);
  const { gateway } = range;
  const gatewayIndex = gateway !== undefined && contains(prefix, gateway) ? indexIn(prefix, gateway) : -1;
  for (let index = slots.indexOf(0, from); index >= 0 && index <= to; index = slots.indexOf(0, index + 1)) {
    if (index === gatewayIndex || isResting(index)) continue;
    if (!claim(store, block, index, lease)) continue;
    setKeepsLeases(block, store.keep);
    return index;
  }
  return -1;
}

/** Returns whether an address was released less than `quarantineSeconds` ago. */
function restingIn({ quarantineSeconds }: Store, { times }: Block): (index: number) => boolean {
  if (quarantineSeconds <= 0) return () => false;
  const since = secondsSinceBoot() - quarantineSeconds;
  return (index) => times[index]! > Math.max(0, since);
}

/** Takes back what `allocate` gave, as if it had not. */
export function giveBack(store: Store, lease: StoredLease, { address, range }: Allocated): void {
  const prefix = prefixIn(range, address);
  unclaim(store, blockAt(store, prefix, true), indexIn(prefix, address), lease);
}

function refusal(message: string): CniError {
  return new CniError(INTERNAL, message);
}

function exhausted(store: Store, set: RangeSet): CniError {
  const message = `no IP addresses available in range set: ${formatRangeSet(set)}`;
  const { quarantineSeconds } = store;
  let restingCount = 0;
  for (const range of quarantineSeconds > 0 ? set : []) {
    for (const block of blocksOf(store, range)) {
      const isResting = restingIn(store, block);
      block.slots.forEach((slot, index) => {
        if (slot === 0 && isResting(index) && isInRange(range, addressAt(block.prefix, index))) restingCount++;
      });
    }
  }
  if (restingCount === 0) return refusal(message);
  const details = `${restingCount} of them were released less than ${quarantineSeconds} s ago (quarantineSeconds)`;
  return new CniError(TRY_AGAIN_LATER, message, details);
}

/** The number of free addresses of the set, according to the lease files. */
export function countFree(directory: string, set: RangeSet): bigint {
  return capacityOf(set) - BigInt(countLeased(directory, set));
}

/** The number of leased addresses of the set, according to the lease files. */
export function countLeased(directory: string, set: RangeSet): number {
  const leased = leasedAddresses(directory);
  return set.reduce((sum, range) => {
    const isTaken = (address: Uint8Array) => isInRange(range, address) && !isGateway(range, address);
    return sum + leased.filter(isTaken).length;
  }, 0);
}

/** The address that `allocate` would take next, according to the lease files; undefined when none is free. */
export function likelyNext(directory: string, set: RangeSet, rangeId: string): Uint8Array | undefined {
  const leased = new Set(leasedAddresses(directory).map(formatAddress));
  for (const { range, from, to } of stretchesAfter(set, readCursor(directory, rangeId))) {
    for (let address = from; compareAddresses(address, to) <= 0; address = nextAddress(address)) {
      if (!isGateway(range, address) && !leased.has(formatAddress(address))) return address;
      // Behind the last of all addresses comes the first.
      if (compareAddresses(address, to) === 0) break;
    }
  }
  return undefined;
}
