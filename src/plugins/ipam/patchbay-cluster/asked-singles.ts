/** Single addresses of a pool, which only who asks for them gets. */
import { surroundings } from "../../../cluster/served-file.ts";
import type { RangeSet } from "../../../ipam/range.ts";
import { formatAddress, parsePrefix } from "../../../net/address.ts";
import type { Served } from "./served-sets.ts";

/** For a call that asks for a single that is served here, that is all that there is of its family. */
export function withAskedSingles(served: Served, asked: readonly Uint8Array[]): Served {
  const { file, sets } = served,
    own = asked.filter((address) => file.singles?.served.includes(formatAddress(address)));
  if (own.length === 0) return served;
  return {
    file,
    sets: sets.map((set, family): RangeSet => {
      const extent = file.extents[family]!, within = parsePrefix(extent.subnet)!;
      const address = own.find(({ length }) => length === within.bytes.length);
      if (address === undefined) return set;
      return [{ start: address, end: address, within, ...surroundings(address, extent, within) }];
    }),
  };
}
