/** How full a set of ranges is, by the lease files: for those who show pools. */
import type { Count, Pool } from "../../contract/summaries.ts";
import { countFree, countLeased } from "../../ipam/allocator.ts";
import { capacityOf, formatRangeSet, type RangeSet } from "../../ipam/range.ts";
import { formatPrefix } from "../../net/address.ts";

export function poolCounts(set: RangeSet, directory: string): Pool {
  return {
    ranges: formatRangeSet(set),
    subnets: set.map(({ subnet }) => formatPrefix(subnet)),
    leased: countLeased(directory, set),
    free: exactly(countFree(directory, set)),
    capacity: exactly(capacityOf(set)),
  };
}

function exactly(count: bigint): Count {
  return count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count;
}
