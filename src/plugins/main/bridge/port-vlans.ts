/** The VLANs of a bridge port, from `vlan` and `vlanTrunk`. Pure. */
import type { VlanRange } from "../../../ffi/netlink/route/bridge.ts";
import { trunkRanges } from "../../shared/trunk.ts";
import type { BridgeConf } from "./bridge.schema.ts";

/** Undefined when no VLANs are configured. */
export function portVlans({ vlan, vlanTrunk }: BridgeConf): VlanRange[] | undefined {
  // Each range is one request.
  const tagged: VlanRange[] = vlanTrunk === undefined ? [] : trunkRanges(vlanTrunk);
  const untagged = (vid: number): VlanRange => ({ first: vid, last: vid, pvid: true, untagged: true });
  if (vlan !== 0) return [...tagged, untagged(vlan)];
  // Untagged frames stay in VLAN 1.
  if (tagged.length > 0) return [...tagged, untagged(1)];
  return vlanTrunk === undefined ? undefined : [];
}
