/** The round robin through the ranges of a set: in which order addresses are tried, and where the next search begins. */
import { SyscallError } from "../ffi/errno.ts";
import { compareAddresses, formatAddress, nextAddress, parseAddress } from "../net/address.ts";
import { readCursor, writeCursor } from "./go-directory.ts";
import { type Range, rangeOf, type RangeSet } from "./range.ts";
import { atCursor, type Store } from "./store.ts";

interface Round {
  set: RangeSet;
  /** The number of the set in the configuration, which is part of the name of its `last_reserved_ip` file. */
  rangeId: string;
}

/** Addresses of a range from `from` to `to` inclusive. */
export interface Stretch {
  range: Range;
  from: Uint8Array;
  to: Uint8Array;
}

/** All addresses of the set once, in the order in which they are tried after `last`. */
export function stretchesAfter(set: RangeSet, last: string | undefined): Stretch[] {
  const cursor = last === undefined ? undefined : parseAddress(last), current = cursor && rangeOf(set, cursor);
  const first = current === undefined ? 0 : set.indexOf(current), stretches: Stretch[] = [];
  if (current !== undefined && compareAddresses(cursor!, current.end) < 0) {
    stretches.push({ range: current, from: nextAddress(cursor!), to: current.end });
  }
  for (let step = current === undefined ? 0 : 1; step < set.length; step++) {
    const range = set[(first + step) % set.length]!;
    stretches.push({ range, from: range.start, to: range.end });
  }
  if (current !== undefined) stretches.push({ range: current, from: current.start, to: cursor! });
  return stretches;
}

/**
 * Records where the next search begins, unless another process has already recorded a later address: going back would
 * allocate addresses that were only just released.
 */
export function noteCursor(
  store: Store,
  { set, rangeId }: Round,
  last: string | undefined,
  { address, range }: { address: Uint8Array; range: Range },
): void {
  try {
    atCursor(store, () => {
      const now = readCursor(store.directory, rangeId);
      const other = now === undefined || now === last ? undefined : parseAddress(now);
      const otherRange = other && rangeOf(set, other);
      if (other !== undefined && otherRange !== undefined) {
        const from = last === undefined ? undefined : parseAddress(last);
        const [ours, theirs] = [rangesUntil(set, from, address, range), rangesUntil(set, from, other, otherRange)];
        if (ours < theirs || (ours === theirs && compareAddresses(address, other) < 0)) return;
      }
      writeCursor(store.directory, rangeId, address);
    });
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    store.report(
      `${formatAddress(address)} was given out, but the next ADD may not go on behind it: ${error.message}`,
    );
  }
}

/** After how many ranges a search that starts at `from` reaches the address. */
function rangesUntil(set: RangeSet, from: Uint8Array | undefined, address: Uint8Array, range: Range): number {
  const start = from && rangeOf(set, from);
  const steps = set.indexOf(range) - (start === undefined ? 0 : set.indexOf(start));
  const isPast = range === start && compareAddresses(address, from!) <= 0;
  return (steps + set.length) % set.length + (isPast ? set.length : 0);
}
