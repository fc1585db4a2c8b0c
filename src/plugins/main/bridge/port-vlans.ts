/** Which VLANs a bridge port is to have, from `vlan` and `vlanTrunk`. Pure. */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { VlanRange } from "../../../ffi/netlink/route/bridge-vlan.ts";
import type { BridgeConf } from "./bridge.schema.ts";

/** undefined when the configuration leaves VLANs alone. */
export function portVlans({ vlan, vlanTrunk }: BridgeConf): VlanRange[] | undefined {
  const tagged = vlanTrunk === undefined ? [] : trunkRanges(vlanTrunk);
  const untagged = (vid: number): VlanRange => ({ first: vid, last: vid, pvid: true, untagged: true });
  if (vlan !== 0) return [...tagged, untagged(vlan)];
  // VLAN 1 stays the one for frames without a tag.
  if (tagged.length > 0) return [...tagged, untagged(1)];
  return vlanTrunk === undefined ? undefined : [];
}

/** Sorted, and joined where they touch: a range is one request, however wide. */
function trunkRanges(trunk: NonNullable<BridgeConf["vlanTrunk"]>): VlanRange[] {
  const ranges: VlanRange[] = [];
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
  return ranges.reduce<VlanRange[]>((joined, range) => {
    const last = joined.at(-1);
    if (last !== undefined && range.first <= last.last + 1) last.last = Math.max(last.last, range.last);
    else joined.push({ ...range });
    return joined;
  }, []);
}
