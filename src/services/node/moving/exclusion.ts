/** A pool excludes what another program has given out of its subnet, less each time, until nothing is in use any more. */
import { poolFrom } from "../../../cluster/pool-decoding.ts";
import { poolKey, type PoolRecord } from "../../../cluster/records.ts";
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { contains, formatAddress, formatPrefix, parsePrefix } from "../../../net/address.ts";
import { changeRecord, inCluster, recordsOf, refuseByHand, unknownName } from "../operator/cluster.ts";

export interface Exclusion {
  pool: string;
  subnet: string;
  /** What the other program has given out. */
  used: readonly Uint8Array[];
  /** What the pool excludes from now on. */
  exclude: readonly string[];
}

export function excludeInPool(
  config: string | undefined,
  { pool: name, subnet, used, exclude }: Exclusion,
): Promise<{ before: number; hasChanged: boolean }> {
  return inCluster(config, async (cluster) => {
    refuseByHand(cluster, "pool", name);
    const known = (await recordsOf(cluster.store)).pools.keys();
    let before = 0, hasChanged = false;
    await changeRecord<PoolRecord>(cluster, poolKey(name), (found) => {
      if (found === undefined) throw unknownName("pool", name, known);
      const { ranges } = poolFrom(name, found.value), own = parsePrefix(subnet)!;
      const at = ranges.findIndex((range) => formatPrefix(range.subnet) === formatPrefix(own));
      if (at < 0) throw new CniError(INTERNAL, `pool ${name} has no range ${subnet}`);
      const { excluded, first, last } = ranges[at]!;
      before = excluded.length;
      const isInRange = (address: Uint8Array) => Bun.deepEquals(clamp(address, first, last), address);
      const later = used.find((address) =>
        isInRange(address) && !excluded.some((prefix) => contains(prefix, address))
      );
      if (later !== undefined) throw stillGiving(name, formatAddress(later));
      const changed = found.value.ranges.map((range, index) =>
        index === at ? { ...(range as Record<string, unknown>), exclude } : range
      );
      const value = { ...found.value, ranges: changed };
      poolFrom(name, value);
      hasChanged = JSON.stringify(value) !== JSON.stringify(found.value);
      return hasChanged ? value : found.value;
    });
    return { before, hasChanged };
  });
}

function clamp(address: Uint8Array, first: Uint8Array, last: Uint8Array): Uint8Array {
  return Buffer.compare(address, first) < 0 ? first : Buffer.compare(address, last) > 0 ? last : address;
}

/** The pool may have given the same address to a container of its own. */
function stillGiving(pool: string, address: string): CniError {
  return new CniError(
    INTERNAL,
    `${address} is in use, and pool ${pool} does not exclude it: the other program still gives addresses out, and one may come twice`,
    "",
    {
      nextStep:
        "change the ipam of every network that names it; 'patchbay ipam list' says whether a container of the pool has " +
        `${address}, too`,
    },
  );
}
