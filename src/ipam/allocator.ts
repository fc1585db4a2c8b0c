/**
 * Which address an owner gets: the requested one, or the next free one behind the address given out last, round and
 * round through the ranges of the set. The order is that of the reference host-local plugin, and so are the refusals.
 */
import { CniError, INTERNAL, TRY_AGAIN_LATER } from "../cni/error.ts";
import { SyscallError } from "../ffi/errno.ts";
import { compareAddresses, contains, formatAddress, lastOf, nextAddress, parseAddress } from "../net/address.ts";
import { leasedAddresses, readCursor, readLease, writeCursor } from "./go-directory.ts";
import { addressAt, type Block, blockPrefix, indexIn, setKeepsLeases } from "./layout.ts";
import { formatRangeSet, isInRange, type Range, rangeCapacity, rangeOf, type RangeSet } from "./range.ts";
import {
  alone,
  blockAt,
  claim,
  existingBlocks,
  indexesOf,
  type Lease,
  leaseOf,
  monotonicSeconds,
  settle,
  settleAll,
  type Store,
  unclaim,
} from "./store.ts";

export interface Wanted {
  set: RangeSet;
  /** The set's number in the configuration: names the file that says where its round robin stands. */
  rangeId: string;
  lease: Lease;
  containerId: string;
  /** An address of the set, or undefined for any. */
  requested: Uint8Array | undefined;
  /** For how long a released address is not handed out again, unless it is requested. */
  quarantineSeconds: number;
}

export interface Allocated {
  address: Uint8Array;
  range: Range;
}

/** Takes an address. Throws in the reference plugin's words when there is none, with nothing taken. */
export function allocate(store: Store, wanted: Wanted): Allocated {
  return wanted.requested === undefined
    ? allocateNext(store, wanted)
    : allocateRequested(store, wanted, wanted.requested);
}

function allocateRequested(store: Store, { set, rangeId, lease }: Wanted, address: Uint8Array): Allocated {
  const range = rangeOf(set, address)!;
  const text = formatAddress(address);
  if (compareAddresses(address, range.gateway) === 0) throw refusal(`requested ip ${text} is subnet's gateway`);
  const attempt = (isSettled: boolean) => {
    const block = blockAt(store, blockPrefix(range.subnet, address), true);
    const index = indexIn(block.prefix, address);
    if (isSettled) settle(store, block, index);
    return claim(store, block, index, lease);
  };
  if (!attempt(false) && !alone(store, () => attempt(true))) {
    throw refusal(`requested IP address ${text} is not available in range set ${formatRangeSet(set)}`);
  }
  noteCursor(store, rangeId, address, readCursor(store.directory, rangeId));
  return { address, range };
}

function allocateNext(store: Store, wanted: Wanted): Allocated {
  const { rangeId } = wanted;
  refuseSecond(store, wanted);
  const last = readCursor(store.directory, rangeId);
  const found = search(store, wanted, last) ?? alone(store, () => {
    settleAll(store, existingBlocks(store));
    return search(store, wanted, last);
  });
  if (found === undefined) throw exhausted(store, wanted);
  noteCursor(store, rangeId, found.address, last);
  return found;
}

/** One attachment has one address of each set (CNI spec 1.1.0, "ADD": not twice without DEL between). */
function refuseSecond(store: Store, { set, lease, containerId }: Wanted): void {
  for (const range of set) {
    for (const block of blocksOf(store, range)) {
      for (const each of [lease, leaseOf({ containerId })]) {
        for (const index of indexesOf(block, each)) {
          const address = addressAt(block.prefix, index);
          if (!isInRange(range, address)) continue;
          const text = readLease(store.directory, address);
          if (text === each.text) {
            throw refusal(
              `${formatAddress(address)} has been allocated to ${containerId}, duplicate allocation is not allowed`,
            );
          }
          // Removed by hand, or never finished.
          if (text === undefined) unclaim(store, block, index, each);
        }
      }
    }
  }
}

function blocksOf(store: Store, { subnet, start }: Range): Block[] {
  const prefix = blockPrefix(subnet, start);
  if (prefix.bits === subnet.bits) return [blockAt(store, prefix, true)];
  return existingBlocks(store).filter((block) => contains(subnet, block.prefix.bytes));
}

function search(store: Store, wanted: Wanted, last: string | undefined): Allocated | undefined {
  for (const { range, from, to } of stretches(wanted.set, parseAddress(last ?? ""))) {
    for (let address = from; compareAddresses(address, to) <= 0;) {
      const block = blockAt(store, blockPrefix(range.subnet, address), true);
      const blockEnd = lastOf(block.prefix);
      const isLast = compareAddresses(blockEnd, to) >= 0;
      const toIndex = indexIn(block.prefix, isLast ? to : blockEnd);
      const index = claimBetween(store, block, indexIn(block.prefix, address), toIndex, range, wanted);
      if (index !== undefined) return { address: addressAt(block.prefix, index), range };
      if (isLast) break;
      address = nextAddress(blockEnd);
    }
  }
  return undefined;
}

interface Stretch {
  range: Range;
  from: Uint8Array;
  to: Uint8Array;
}

/** The set's addresses in the order in which they are tried: once round, starting behind `last`. */
function* stretches(set: RangeSet, last: Uint8Array | undefined): Generator<Stretch> {
  const current = last === undefined ? undefined : rangeOf(set, last);
  if (current === undefined || last === undefined) {
    for (const range of set) yield { range, from: range.start, to: range.end };
    return;
  }
  if (compareAddresses(last, current.end) < 0) yield { range: current, from: nextAddress(last), to: current.end };
  const at = set.indexOf(current);
  for (const range of [...set.slice(at + 1), ...set.slice(0, at)]) yield { range, from: range.start, to: range.end };
  yield { range: current, from: current.start, to: last };
}

/** Claims the first free address, in the order of a native search: a loop over 65,536 words would cost more than all else. */
function claimBetween(
  store: Store,
  block: Block,
  from: number,
  to: number,
  { gateway }: Range,
  { lease, quarantineSeconds }: Wanted,
): number | undefined {
  const { slots, prefix } = block;
  const gatewayIndex = contains(prefix, gateway) ? indexIn(prefix, gateway) : -1;
  for (let index = slots.indexOf(0, from); index >= 0 && index <= to; index = slots.indexOf(0, index + 1)) {
    if (index === gatewayIndex || isResting(block, index, quarantineSeconds)) continue;
    if (!claim(store, block, index, lease)) continue;
    setKeepsLeases(block, store.keep);
    return index;
  }
  return undefined;
}

function isResting({ times }: Block, index: number, quarantineSeconds: number): boolean {
  const releasedAt = times[index]!;
  return quarantineSeconds > 0 && releasedAt > 0 && monotonicSeconds() - releasedAt < quarantineSeconds;
}

function noteCursor(store: Store, rangeId: string, address: Uint8Array, before: string | undefined): void {
  try {
    writeCursor(store.directory, rangeId, address, before);
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    store.report(
      `${formatAddress(address)} was given out, but the next ADD may not go on behind it: ${error.message}`,
    );
  }
}

function refusal(message: string): CniError {
  return new CniError(INTERNAL, message);
}

function exhausted(store: Store, { set, quarantineSeconds }: Wanted): CniError {
  const message = `no IP addresses available in range set: ${formatRangeSet(set)}`;
  let restingCount = 0;
  for (const range of quarantineSeconds > 0 ? set : []) {
    for (const block of blocksOf(store, range)) {
      block.slots.forEach((slot, index) => {
        const isFree = slot === 0 && isInRange(range, addressAt(block.prefix, index));
        if (isFree && isResting(block, index, quarantineSeconds)) restingCount++;
      });
    }
  }
  if (restingCount === 0) return refusal(message);
  const details = `${restingCount} of them were released less than ${quarantineSeconds} s ago (quarantineSeconds)`;
  return new CniError(TRY_AGAIN_LATER, message, details);
}

/** How many addresses of the set are free by the lease files. Changes nothing. */
export function countFree(directory: string, set: RangeSet): number {
  const leased = leasedAddresses(directory);
  return set.reduce((free, range) => {
    const isTaken = (address: Uint8Array) =>
      isInRange(range, address) && compareAddresses(address, range.gateway) !== 0;
    return free + rangeCapacity(range) - leased.filter(isTaken).length;
  }, 0);
}
