/** A pool excludes what another program has given out of its subnet, less each time, until nothing is in use any more. */
import { poolFrom } from "../../../cluster/pool-decoding.ts";
import type { PoolRecord } from "../../../cluster/records.ts";
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { compareAddresses, contains, formatAddress, formatPrefix, parsePrefix } from "../../../net/address.ts";
import { changeNamed, inCluster } from "../operator/cluster.ts";
import { notDone } from "../not-done.ts";

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
    let before = 0, hasChanged = false;
    await changeNamed<PoolRecord>(cluster, "pool", name, (value) => {
      const { ranges } = poolFrom(name, value), own = parsePrefix(subnet)!;
      const at = ranges.findIndex((range) => formatPrefix(range.subnet) === formatPrefix(own));
      if (at < 0) throw new CniError(INTERNAL, `pool ${name} has no range ${subnet}`);
      const { excluded, first, last } = ranges[at]!;
      before = excluded.length;
      const isInRange = (address: Uint8Array) =>
        compareAddresses(first, address) <= 0 && compareAddresses(address, last) <= 0;
      const later = used.find((address) =>
        isInRange(address) && !excluded.some((prefix) => contains(prefix, address))
      );
      if (later !== undefined) throw stillGiving(name, formatAddress(later));
      const changed = {
        ...value,
        ranges: value.ranges.map((range, index) => index === at ? { ...range as object, exclude } : range),
      };
      poolFrom(name, changed);
      hasChanged = JSON.stringify(changed) !== JSON.stringify(value);
      return hasChanged ? changed : value;
    });
    return { before, hasChanged };
  });
}

/** The pool may have given the same address to a container of its own. */
function stillGiving(pool: string, address: string): CniError {
  return notDone(
    `${address} is in use, and pool ${pool} does not exclude it: the other program still gives addresses out, and one may come twice`,
    `change the ipam of every network that names it; 'patchbay ipam list' says whether a container of the pool has ${address}, too`,
  );
}
