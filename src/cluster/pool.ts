/**
 * A pool: ranges of addresses, cut into blocks that nodes claim. Block i is the i-th piece of each range, so that one key
 * has both families.
 *
 * flat: one subnet for all nodes, such as a VLAN; a block is so many addresses of it. routed: each block is a subnet.
 */
import { fromBigInt, isSameBytes, type Prefix, toBigInt } from "../net/address.ts";

export interface ClusterPool {
  name: string;
  layout: "flat" | "routed";
  /** Nothing more is claimed of a closed one. */
  isOpen: boolean;
  ranges: readonly PoolRange[];
  /**
   * Addresses of the first range that ADD gives only to who asks for them: each is a block of its own, which comes when it is
   * asked for.
   */
  singles: readonly Uint8Array[];
  /** What ADD answers beside addresses. */
  routes: readonly PoolRoute[];
  /** Only nodes that have these labels claim of it. */
  labels: Readonly<Record<string, string>>;
  /** So many empty blocks a node claims ahead. */
  spare: number;
  /** A node's. */
  mostBlocks: number;
  /** The host's link on which a node asks, before it gives out a block, whether somebody has an address of it already. */
  probedLink?: string;
}

export interface PoolRoute {
  dst: string;
  gw?: string;
}

export interface PoolRange {
  subnet: Prefix;
  /** A flat pool's. */
  gateway?: Uint8Array;
  /** The first address of block 0, and the last of all blocks. */
  first: Uint8Array;
  last: Uint8Array;
  /** How many addresses a block has. */
  size: bigint;
  excluded: readonly Prefix[];
}

/** The addresses that a block has of one range. */
export interface Piece {
  subnet: Prefix;
  first: Uint8Array;
  last: Uint8Array;
  gateway?: Uint8Array;
}

/** More blocks than this nobody counts or lists. */
const MOST_BLOCKS = 1 << 20;
/** A single's number is its place in the subnet behind those of all blocks: a list that is edited changes no other's. */
const FIRST_SINGLE = MOST_BLOCKS, MOST_SINGLES_PLACE = 2 ** 32;
export const MOST_SINGLES = 1024;

export function countBlocks({ ranges }: ClusterPool): number {
  const counts = ranges.map(({ first, last, size }) => (toBigInt(last) - toBigInt(first) + 1n) / size);
  return Number(counts.reduce((least, count) => count < least ? count : least, BigInt(MOST_BLOCKS)));
}

/** Undefined for what is too far from the subnet's first address to have a number. */
export function offsetOf({ subnet }: PoolRange, address: Uint8Array): number | undefined {
  const offset = toBigInt(address) - toBigInt(subnet.bytes);
  return offset < 0n || offset >= MOST_SINGLES_PLACE ? undefined : Number(offset);
}

export function isSingle(index: number): boolean {
  return index >= FIRST_SINGLE;
}

/** One for each range; a single has one alone. */
export function piecesOf(pool: ClusterPool, index: number): Piece[] {
  if (isSingle(index)) return pieceOfSingle(pool, index);
  return pool.ranges.map(({ subnet, first, size, gateway }) => {
    const start = toBigInt(first) + BigInt(index) * size, length = first.length;
    const piece = { first: fromBigInt(start, length), last: fromBigInt(start + size - 1n, length) };
    if (pool.layout === "flat") return { ...piece, subnet, gateway };
    const bits = subnet.bytes.length * 8 - (size.toString(2).length - 1);
    return { ...piece, subnet: { bytes: piece.first, bits } };
  });
}

function pieceOfSingle({ ranges: [range], singles }: ClusterPool, index: number): Piece[] {
  const { subnet, gateway } = range!, address = singles.find((each) => numberOfSingle(range!, each) === index);
  return address === undefined ? [] : [{ subnet, first: address, last: address, gateway }];
}

function numberOfSingle(range: PoolRange, address: Uint8Array): number {
  return FIRST_SINGLE + offsetOf(range, address)!;
}

/** Which block has the address; undefined outside of all of them. */
export function blockWith(pool: ClusterPool, address: Uint8Array): number | undefined {
  const isAmongSingles = pool.singles.some((single) => isSameBytes(single, address));
  return isAmongSingles ? numberOfSingle(pool.ranges[0]!, address) : plainBlockWith(pool, address);
}

/** The same, as if the pool had no singles: who had it before the address became one may give it out yet. */
export function plainBlockWith(pool: ClusterPool, address: Uint8Array): number | undefined {
  const range = pool.ranges.find(({ first }) => first.length === address.length);
  if (range === undefined) return undefined;
  const distance = toBigInt(address) - toBigInt(range.first), index = distance / range.size;
  return distance < 0n || index >= BigInt(countBlocks(pool)) ? undefined : Number(index);
}

/** What may never change under a pool's blocks. */
export function shapeOf({ layout, ranges }: ClusterPool): string {
  return JSON.stringify([
    layout,
    ranges.map(({ subnet, first, last, size }) => [
      [...subnet.bytes, subnet.bits],
      [...first],
      [...last],
      String(size),
    ]),
  ]);
}

/** Blocks say of which pool they are: one that is cut in another way is another pool, whatever its name and record. */
export function birthOf(birth: string, pool: ClusterPool): string {
  return `${birth}-${new Bun.CryptoHasher("sha256").update(shapeOf(pool)).digest("hex").slice(0, 12)}`;
}
