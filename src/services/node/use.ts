/** Which blocks containers of this host have addresses of, whatever the state directory says. */
import { blockKey } from "../../cluster/records.ts";
import { blockWith } from "../../cluster/pool.ts";
import { leasedAddresses } from "../../ipam/go-directory.ts";
import { leasedExclusively } from "../../ipam/taking-away.ts";
import { exists } from "../../ffi/files.ts";
import { parseAddress } from "../../net/address.ts";
import type { NodePool } from "./pools.ts";

/** The addresses of a pool that containers of this boot have, by their ledgers: a state directory may have been emptied. */
export type AttachedAddresses = (pool: string) => readonly string[];

/** The number of leases by block. An ADD that is under way may have one more. */
export function countLeases(pools: readonly NodePool[], leases: string): Map<string, number> {
  return countIn(pools, (pool) => leasedAddresses(`${leases}/${pool}`));
}

/**
 * The blocks that are in use, with no ADD under way: who has taken a block out of what is served, and then finds it here no
 * more, may give it away.
 */
export function countUse(
  pools: readonly NodePool[],
  leases: string,
  attached: AttachedAddresses,
  report: (note: string) => void,
): Map<string, number> {
  return countIn(pools, (pool) => {
    const directory = `${leases}/${pool}`, known = attached(pool).flatMap((text) => parseAddress(text) ?? []);
    if (!exists(directory)) return known;
    const options = { directory, keep: false, quarantineSeconds: 0, report };
    return [...leasedExclusively(options, (leased) => leased, PATIENCE_MS), ...known];
  });
}

/** The agent notices nothing meanwhile. */
const PATIENCE_MS = 500;

function countIn(pools: readonly NodePool[], addressesOf: (pool: string) => Uint8Array[]): Map<string, number> {
  const used = new Map<string, number>();
  for (const { name, pool } of pools) {
    for (const address of addressesOf(name)) {
      const index = blockWith(pool, address);
      if (index === undefined) continue;
      const key = blockKey(name, index);
      used.set(key, (used.get(key) ?? 0) + 1);
    }
  }
  return used;
}
