/** Addresses that two pools have in common: right on two segments that do not meet, and wrong on one. */
import { formatAddress, toBigInt } from "../net/address.ts";
import type { ClusterPool, PoolRange } from "./pool.ts";

export interface PoolOverlap {
  pools: [string, string];
  /** The first and the last address. */
  addresses: string;
}

export function overlapsAmong(pools: readonly ClusterPool[]): PoolOverlap[] {
  return pools.flatMap((pool, at) => pools.slice(at + 1).flatMap((other) => overlapsOf(pool, other)));
}

export function overlapsOf(one: ClusterPool, other: ClusterPool): PoolOverlap[] {
  return one.ranges.flatMap((range) =>
    other.ranges.filter(({ first }) => first.length === range.first.length).flatMap((its) => {
      const first = later(range.first, its.first), last = earlier(range, its);
      if (toBigInt(first) > toBigInt(last)) return [];
      return [{ pools: [one.name, other.name], addresses: `${formatAddress(first)}-${formatAddress(last)}` }];
    })
  );
}

function later(one: Uint8Array, other: Uint8Array): Uint8Array {
  return toBigInt(one) > toBigInt(other) ? one : other;
}

function earlier(one: PoolRange, other: PoolRange): Uint8Array {
  return toBigInt(one.last) < toBigInt(other.last) ? one.last : other.last;
}
