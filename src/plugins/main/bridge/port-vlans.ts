/** The VLANs of a bridge port, from `vlan` and `vlanTrunk`. Pure. */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { VlanRange } from "../../../ffi/netlink/route/bridge.ts";
import type { BridgeConf } from "./bridge.schema.ts";

/** Undefined when no VLANs are configured. */
export function portVlans({ vlan, vlanTrunk }: BridgeConf): VlanRange[] | undefined {
  const tagged = vlanTrunk === undefined ? [] : trunkRanges(vlanTrunk);
  const untagged = (vid: number): VlanRange => ({ first: vid, last: vid, pvid: true, untagged: true });
  if (vlan !== 0) return [...tagged, untagged(vlan)];
  // Untagged frames stay in VLAN 1.
  if (tagged.length > 0) return [...tagged, untagged(1)];
  return vlanTrunk === undefined ? undefined : [];
}

/** Sorted, with adjacent ranges joined, because each range is one request. */
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
