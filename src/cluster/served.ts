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
import { gatewayInBlock, type PoolExtent, type ServedRange } from "./served-file.ts";
import { type ClusterPool, countBlocks, isSingle, type Piece, piecesOf } from "./pool.ts";

export function extentsOf(pool: ClusterPool): PoolExtent[] {
  const blocks = BigInt(countBlocks(pool));
  return pool.ranges.map(({ subnet, first, size, gateway }) => ({
    subnet: formatPrefix(subnet),
    ...gateway !== undefined && { gateway: formatAddress(gateway) },
    ...pool.layout === "routed" && { blockLength: first.length * 8 - (size.toString(2).length - 1) },
    first: formatAddress(first),
    last: formatAddress(fromBigInt(toBigInt(first) + blocks * size - 1n, first.length)),
    blockSize: String(size),
  }));
}

/** One list for each family, in which the ranges of all blocks are in order. `foreign`: what hosts of the segment have. */
export function servedRanges(
  pool: ClusterPool,
  blocks: readonly number[],
  foreign: readonly string[] = [],
): ServedRange[][] {
  const foreigners = foreign.map((address) => alone(parseAddress(address)!));
  return pool.ranges.map((range, at) =>
    blocks.filter((index) => !isSingle(index)).toSorted((one, other) => one - other).flatMap((index) => {
      const piece = piecesOf(pool, index)[at]!, gateway = piece.gateway ?? gatewayOf(pool, piece);
      const kept = [
        ...range.excluded,
        ...pool.singles.map(alone),
        ...foreigners,
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

/** The first of them, at most so many of each family. */
export function firstAddressesOf(pool: ClusterPool, index: number, most: number): Uint8Array[] {
  if (isSingle(index)) return piecesOf(pool, index).map(({ first }) => first);
  return servedRanges(pool, [index]).flatMap((ranges) => {
    const found: Uint8Array[] = [];
    for (const { rangeStart, rangeEnd } of ranges) {
      const { length } = parseAddress(rangeStart)!, end = numberOf(rangeEnd);
      for (let at = numberOf(rangeStart); at <= end && found.length < most; at++) found.push(fromBigInt(at, length));
    }
    return found;
  });
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

export interface InNoBlock {
  first: string;
  last: string;
  count: bigint;
}

/** What a range of IPv4 has behind its last block, and nobody gets for that alone. There is enough of IPv6. */
export function inNoBlock(pool: ClusterPool): InNoBlock[] {
  return pool.ranges.filter(({ first }) => first.length === 4).flatMap(
    ({ subnet, first, last, size, gateway, excluded }) => {
      const start = toBigInt(first) + BigInt(countBlocks(pool)) * size;
      if (start > toBigInt(last)) return [];
      const kept = [...excluded, ...[...pool.singles, ...gateway === undefined ? [] : [gateway]].map(alone)];
      const rest = { subnet, first: fromBigInt(start, first.length), last };
      const spans = spansWithout(rest, [...kept, ...pool.layout === "flat" ? ofTheSubnet(subnet) : []]);
      if (spans.length === 0) return [];
      const count = spans.reduce((sum, [from, to]) => sum + toBigInt(to) - toBigInt(from) + 1n, 0n);
      return [{ first: formatAddress(spans[0]![0]), last: formatAddress(spans.at(-1)![1]), count }];
    },
  );
}

function numberOf(address: string): bigint {
  return toBigInt(parseAddress(address)!);
}

function gatewayOf({ layout }: ClusterPool, { subnet }: Piece): Uint8Array | undefined {
  return layout === "flat" ? undefined : gatewayInBlock(subnet);
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
