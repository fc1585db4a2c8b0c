/** The addresses that ADD may give out of a pool's blocks: without what belongs to the subnet, the gateway, or is excluded. */
import {
  formatAddress,
  formatPrefix,
  fromBigInt,
  lastOf,
  parseAddress,
  type Prefix,
  toBigInt,
} from "../net/address.ts";
import { type ClusterPool, countBlocks, isSingle, type Piece, piecesOf } from "./pool.ts";

/** As host-local's configuration has it. */
export interface ServedRange {
  subnet: string;
  rangeStart: string;
  rangeEnd: string;
  gateway?: string;
}

/** All that the blocks of a pool have of a family, whoever serves them: for what is said of an address. */
export interface PoolExtent {
  subnet: string;
  /** The first address of block 0, and the last of all blocks. */
  first: string;
  last: string;
  /** How many addresses a block has, in digits: a block of IPv6 may have more than a number can say. */
  blockSize: string;
}

export function extentsOf(pool: ClusterPool): PoolExtent[] {
  const blocks = BigInt(countBlocks(pool));
  return pool.ranges.map(({ subnet, first, size }) => ({
    subnet: formatPrefix(subnet),
    first: formatAddress(first),
    last: formatAddress(fromBigInt(toBigInt(first) + blocks * size - 1n, first.length)),
    blockSize: String(size),
  }));
}

/** One list for each family, in which the ranges of all blocks are in order. */
export function servedRanges(pool: ClusterPool, blocks: readonly number[]): ServedRange[][] {
  return pool.ranges.map((range, at) =>
    blocks.filter((index) => !isSingle(index)).toSorted((one, other) => one - other).flatMap((index) => {
      const piece = piecesOf(pool, index)[at]!, gateway = piece.gateway ?? gatewayIn(pool, piece);
      const kept = [
        ...range.excluded,
        ...pool.singles.map(alone),
        ...(gateway === undefined ? [] : [alone(gateway)]),
        ...ofTheSubnet(piece.subnet),
      ];
      return spansWithout(piece, kept).map(([first, last]): ServedRange => ({
        subnet: formatPrefix(piece.subnet),
        rangeStart: formatAddress(first),
        rangeEnd: formatAddress(last),
        ...gateway !== undefined && { gateway: formatAddress(gateway) },
      }));
    })
  );
}

/** The addresses among the blocks that ADD gives to who asks for them. */
export function servedSingles(pool: ClusterPool, blocks: readonly number[]): string[] {
  return blocks.filter(isSingle).flatMap((index) => piecesOf(pool, index).map(({ first }) => formatAddress(first)));
}

/** For how many containers the blocks have addresses: each gets one of every family. */
export function countServed(pool: ClusterPool, blocks: readonly number[]): number {
  const counts = servedRanges(pool, blocks).map((ranges) =>
    ranges.reduce((sum, { rangeStart, rangeEnd }) => sum + numberOf(rangeEnd) - numberOf(rangeStart) + 1n, 0n)
  );
  return Number(counts.reduce((least, count) => count < least ? count : least, BigInt(Number.MAX_SAFE_INTEGER)));
}

function numberOf(address: string): bigint {
  return toBigInt(parseAddress(address)!);
}

/** In a routed pool the node itself has the block's first address. */
function gatewayIn({ layout }: ClusterPool, { first, subnet }: Piece): Uint8Array | undefined {
  const bits = first.length * 8;
  if (layout === "flat" || bits - subnet.bits < 2) return undefined;
  return fromBigInt(toBigInt(first) + 1n, first.length);
}

function alone(address: Uint8Array): Prefix {
  return { bytes: address, bits: address.length * 8 };
}

/** Its own address, and for IPv4 that of all hosts. */
function ofTheSubnet(subnet: Prefix): Prefix[] {
  if (subnet.bytes.length * 8 - subnet.bits < 2) return [];
  const own = alone(subnet.bytes);
  return subnet.bytes.length === 4 ? [own, alone(lastOf(subnet))] : [own];
}

type Span = readonly [first: Uint8Array, last: Uint8Array];

function spansWithout({ first, last }: Piece, kept: readonly Prefix[]): Span[] {
  const length = first.length, end = toBigInt(last), spans: Span[] = [];
  const holes = kept.filter(({ bytes }) => bytes.length === length)
    .map((prefix) => [toBigInt(prefix.bytes), toBigInt(lastOf(prefix))] as const)
    .sort(([one], [other]) => one < other ? -1 : 1);
  let at = toBigInt(first);
  for (const [from, to] of [...holes, [end + 1n, end + 1n] as const]) {
    const before = from - 1n < end ? from - 1n : end;
    if (at <= before) spans.push([fromBigInt(at, length), fromBigInt(before, length)]);
    if (to >= at) at = to + 1n;
  }
  return spans;
}
