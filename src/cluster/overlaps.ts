/** Addresses that two pools have in common: right on two segments that do not meet, and wrong on one. */
import { compareAddresses, formatAddress } from "../net/address.ts";
import type { ClusterPool } from "./pool.ts";

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
      const first = [range.first, its.first].sort(compareAddresses)[1]!;
      const last = [range.last, its.last].sort(compareAddresses)[0]!;
      if (compareAddresses(first, last) > 0) return [];
      return [{ pools: [one.name, other.name], addresses: `${formatAddress(first)}-${formatAddress(last)}` }];
    })
  );
}
