/** What the ledger says of a port of Open vSwitch. */
import type { Owner } from "../../../contract/owner.ts";

export interface OvsPortSpec extends Owner {
  /** Where the database listens: `unix:/var/run/openvswitch/db.sock`. */
  server: string;
  bridge: string;
  /** As ADD found the bridge: packets go through the process ovs-vswitchd, and not through the kernel. */
  isUserspace?: boolean;
  /** The host's end of the container's link; "" when it is not known: others made it, and there is no prevResult. */
  hostName: string;
  /** CNI_NETNS: people and ovs-cni look for it. */
  netnsPath: string;
  vlans: PortVlans;
  /** The virtual network whose tunnel port the bridge has to have. */
  vxlanId?: number;
  ofportRequest?: number;
  interfaceType?: string;
  /** The logical port of OVN that it is. */
  ovnPort?: string;
  podUid?: string;
  /** How long ADD waits until Open vSwitch has the port. */
  patienceMs: number;
}

/** As the columns of the table Port: frames of one VLAN without its tag, or of some VLANs with them; without `trunks`, of all. */
export type PortVlans =
  | { mode: "access"; tag: number }
  | { mode: "trunk"; trunks?: { first: number; last: number }[] };

export function describeVlans(vlans: PortVlans): string {
  if (vlans.mode === "access") return `VLAN ${vlans.tag}`;
  const ranges = vlans.trunks?.map(({ first, last }) => first === last ? `${first}` : `${first}-${last}`);
  return ranges === undefined ? "all VLANs" : `VLANs ${ranges.join(", ")} tagged`;
}

export function trunkIds({ trunks = [] }: { trunks?: { first: number; last: number }[] }): number[] {
  return trunks.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, index) => first + index));
}
