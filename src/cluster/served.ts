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
import { gatewayInBlock, type PoolExtent, type ServedPool } from "./served-file.ts";
import { type ClusterPool, countBlocks, isSingle, type Piece, piecesOf } from "./pool.ts";

type ServedAddresses = Pick<
  ServedPool,
  "pool" | "layout" | "spans" | "foreign" | "singles" | "extents" | "routes"
>;

/** What ADD is told of the blocks. `foreign`: what hosts of the segment have. */
export function servedAddresses(
  pool: ClusterPool,
  blocks: readonly number[],
  foreign: readonly string[] = [],
): ServedAddresses {
  const all = pool.singles.map(formatAddress),
    own = blocks.filter(isSingle).flatMap((index) => piecesOf(pool, index).map(({ first }) => formatAddress(first)));
  return {
    pool: pool.name,
    layout: pool.layout,
    spans: spansOf(pool, blocks, foreign).map((spans, at) => {
      const digits = 2 * pool.ranges[at]!.first.length;
      return spans.flat().map((address) => address.toString(16).padStart(digits, "0")).join("");
    }),
    ...foreign.length > 0 && { foreign },
    ...all.length > 0 && { singles: { all, served: own.filter((address) => !foreign.includes(address)) } },
    extents: extentsOf(pool),
    routes: pool.routes,
  };
}

function extentsOf(pool: ClusterPool): PoolExtent[] {
  const ends = piecesOf(pool, countBlocks(pool) - 1);
  return pool.ranges.map(({ subnet, first, size, gateway }, at) => ({
    subnet: formatPrefix(subnet),
    ...gateway !== undefined && { gateway: formatAddress(gateway) },
    ...pool.layout === "routed" && { blockLength: ends[at]!.subnet.bits },
    first: formatAddress(first),
    last: formatAddress(ends[at]!.last),
    blockSize: String(size),
  }));
}

/** The first of them, at most so many of each family. */
export function firstAddressesOf(pool: ClusterPool, index: number, most: number): Uint8Array[] {
  if (isSingle(index)) return piecesOf(pool, index).map(({ first }) => first);
  return spansOf(pool, [index]).flatMap((spans, at) => {
    const { length } = pool.ranges[at]!.first, found: Uint8Array[] = [];
    for (const [first, last] of spans) {
      for (let each = first; each <= last && found.length < most; each++) found.push(fromBigInt(each, length));
    }
    return found;
  });
}

/** For how many containers the blocks have addresses: each gets one of every family. */
export function countServed(pool: ClusterPool, blocks: readonly number[]): number {
  const counts = spansOf(pool, blocks).map((spans) =>
    spans.reduce((sum, [first, last]) => sum + last - first + 1n, 0n)
  );
  return Number(counts.reduce((least, count) => count < least ? count : least, BigInt(Number.MAX_SAFE_INTEGER)));
}

type Span = readonly [first: bigint, last: bigint];

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
      const count = spans.reduce((sum, [from, to]) => sum + to - from + 1n, 0n);
      const text = (number: bigint) => formatAddress(fromBigInt(number, first.length));
      return [{ first: text(spans[0]![0]), last: text(spans.at(-1)![1]), count }];
    },
  );
}

/** One list for each family, in which the spans of all blocks are in order. */
function spansOf(pool: ClusterPool, blocks: readonly number[], foreign: readonly string[] = []): Span[][] {
  const plain = blocks.filter((index) => !isSingle(index)).toSorted((one, other) => one - other),
    others = [...pool.singles, ...foreign.map((address) => parseAddress(address)!)].map(alone);
  return pool.ranges.map(({ excluded }, at) =>
    plain.flatMap((index) => {
      const piece = piecesOf(pool, index)[at]!,
        gateway = pool.layout === "flat" ? piece.gateway : gatewayInBlock(piece.subnet);
      const own = gateway === undefined ? [] : [alone(gateway)];
      return spansWithout(piece, [...excluded, ...others, ...own, ...ofTheSubnet(piece.subnet)]);
    })
  );
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

function spansWithout({ first, last }: Piece, kept: readonly Prefix[]): Span[] {
  const end = toBigInt(last), spans: Span[] = [];
  const holes = kept.filter(({ bytes }) => bytes.length === first.length)
    .map((prefix) => [toBigInt(prefix.bytes), toBigInt(lastOf(prefix))] as const)
    .sort(([one], [other]) => one < other ? -1 : 1);
  let at = toBigInt(first);
  for (const [from, to] of [...holes, [end + 1n, end + 1n] as const]) {
    const before = from - 1n < end ? from - 1n : end;
    if (at <= before) spans.push([at, before]);
    if (to >= at) at = to + 1n;
  }
  return spans;
}
