/** Chooses subnets for a network without any: for IPv4 from the pools, for IPv6 at random. */
import { formatPrefix, lastOf, networkOf, overlap, type Prefix, toBigInt } from "../../net/address.ts";
import type { Creation } from "./netavark.schema.ts";
import { prefixOf } from "./network.ts";

type Pool = Creation["options"]["subnet_pools"][number];

/** The first of the pools' subnets that overlaps none of `taken`. */
export function freeSubnet4(pools: readonly Pool[], taken: readonly string[]): string {
  const ranges = taken.map(prefixOf).filter(({ bytes }) => bytes.length === 4).map(rangeOf)
    .sort((one, other) => one.first - other.first);
  for (const { base, size } of pools) {
    const pool = prefixOf(base);
    if (pool.bytes.length !== 4) continue;
    if (size > 32) throw new Error(`Failed to create network from pool ${base}: a size of ${size} is beyond 32`);
    const found = firstGap(rangeOf(pool), 2 ** (32 - size), ranges);
    if (found !== undefined) return `${textOf(found)}/${size}`;
  }
  throw new Error("could not find free subnet from subnet pools");
}

/** The first and the last address, as numbers. */
interface Range {
  first: number;
  last: number;
}

function rangeOf(prefix: Prefix): Range {
  return { first: Number(toBigInt(networkOf(prefix))), last: Number(toBigInt(lastOf(prefix))) };
}

/** The first `length` free addresses, aligned to the length. `taken` is sorted, so one pass finds them. */
function firstGap({ first, last }: Range, length: number, taken: readonly Range[]): number | undefined {
  let candidate = first;
  for (const range of taken) {
    if (range.first >= candidate + length) break;
    if (range.last >= candidate) candidate = first + Math.ceil((range.last + 1 - first) / length) * length;
  }
  return candidate + length - 1 <= last ? candidate : undefined;
}

function textOf(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

const UNIQUE_LOCAL = 0xfd, BITS = 64, MOST_TRIES = 10_000;

/** RFC 4193: 40 random bits for a site and 16 for a subnet of it. */
export function freeSubnet6(taken: readonly string[], random: (count: number) => Uint8Array): string {
  const others = taken.map(prefixOf).filter(({ bytes }) => bytes.length === 16);
  for (let attempt = 0; attempt < MOST_TRIES; attempt++) {
    const bytes = new Uint8Array(16);
    bytes.set(random(7), 1);
    bytes[0] = UNIQUE_LOCAL;
    const prefix = { bytes, bits: BITS };
    if (!others.some((other) => overlap(prefix, other))) return formatPrefix(prefix);
  }
  throw new Error("failed to get random ipv6 subnet: fd00::/8 is used");
}
