/** The round robin through the ranges of a set: in which order addresses are tried, and where the next search begins. */
import { SyscallError } from "../ffi/errno.ts";
import { compareAddresses, formatAddress, nextAddress, parseAddress } from "../net/address.ts";
import { readCursor, writeCursor } from "./go-directory.ts";
import { indexOfRange, type Range, type RangeSet } from "./range.ts";
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

/** All addresses of a set once, in the order in which they are tried after `last`: stretch by stretch. */
export class Stretches {
  /** How many there are, with an empty one where `last` ends its range. */
  readonly count: number;
  private readonly cursor: Uint8Array | undefined;
  private readonly first: number;

  constructor(private readonly set: RangeSet, last: string | undefined) {
    const cursor = last === undefined ? undefined : parseAddress(last);
    const current = cursor === undefined ? -1 : indexOfRange(set, cursor);
    this.cursor = current < 0 ? undefined : cursor;
    this.first = Math.max(0, current);
    this.count = set.length + (current < 0 ? 0 : 1);
  }

  at(step: number): Stretch | undefined {
    const { set, cursor, first } = this, range = set.at((first + step) % set.length)!;
    if (cursor !== undefined && step === 0) {
      return compareAddresses(cursor, range.end) < 0
        ? { range, from: nextAddress(cursor), to: range.end }
        : undefined;
    }
    return { range, from: range.start, to: cursor !== undefined && step === set.length ? cursor : range.end };
  }
}

/**
 * Records where the next search begins, unless another process has already recorded a later address: going back would
 * allocate addresses that were only just released.
 */
export function noteCursor(
  store: Store,
  { set, rangeId }: Round,
  last: string | undefined,
  address: Uint8Array,
): void {
  try {
    atCursor(store, () => {
      const now = readCursor(store.directory, rangeId);
      const other = now === undefined || now === last ? undefined : parseAddress(now);
      if (other !== undefined && indexOfRange(set, other) >= 0) {
        const from = last === undefined ? undefined : parseAddress(last);
        const ours = rangesUntil(set, from, address), theirs = rangesUntil(set, from, other);
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
function rangesUntil(set: RangeSet, from: Uint8Array | undefined, address: Uint8Array): number {
  const start = from === undefined ? -1 : indexOfRange(set, from), index = indexOfRange(set, address);
  const isPast = index === start && compareAddresses(address, from!) <= 0;
  return (index - Math.max(0, start) + set.length) % set.length + (isPast ? set.length : 0);
}
