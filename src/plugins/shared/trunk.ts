/** The VLANs of `vlanTrunk` and `trunk`: ranges, and single ones by id. Pure. */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";

type TrunkItem = { minID?: number; maxID?: number; id?: number };

/** Sorted, with adjacent ranges joined. */
export function trunkRanges(trunk: readonly TrunkItem[]): { first: number; last: number }[] {
  const ranges: { first: number; last: number }[] = [];
  for (const { minID, maxID, id } of trunk) {
    if (minID !== undefined && maxID === undefined) {
      throw new CniError(INVALID_CONFIG, "minID and maxID should be configured simultaneously, maxID is missing");
    }
    if (minID === undefined && maxID !== undefined) {
      throw new CniError(INVALID_CONFIG, "minID and maxID should be configured simultaneously, minID is missing");
    }
    if (minID! > maxID!) {
      throw new CniError(
        INVALID_CONFIG,
        "minID is greater than maxID in trunk parameter",
        `minID ${minID}, maxID ${maxID}`,
      );
    }
    if (minID !== undefined && maxID !== undefined) ranges.push({ first: minID, last: maxID });
    if (id !== undefined) ranges.push({ first: id, last: id });
  }
  ranges.sort((a, b) => a.first - b.first);
  return ranges.reduce<{ first: number; last: number }[]>((joined, range) => {
    const last = joined.at(-1);
    if (last !== undefined && range.first <= last.last + 1) last.last = Math.max(last.last, range.last);
    else joined.push({ ...range });
    return joined;
  }, []);
}
