/** Features that the host may lack. A plugin is not asked the demands for which it needs a missing feature. */
import { closeFile, exists } from "../ffi/files.ts";
import { hasNfTables } from "../ffi/netlink/nftables/batch.ts";
import { knowsLinkKind } from "../ffi/netlink/route/link.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, withNetlink } from "../ffi/netlink/socket.ts";
import { inNetns, makeNetns, openOwnNetns } from "../ffi/netns.ts";

const probes = {
  "veth links": hasKind("veth"),
  "bridge links": hasKind("bridge"),
  "dummy links": hasKind("dummy"),
  "ifb links": hasKind("ifb"),
  "VLAN links": hasKind("vlan"),
  "macvlan links": hasKind("macvlan"),
  "ipvlan links": hasKind("ipvlan"),
  "VRF links": hasKind("vrf"),
  "tap links": () => exists("/dev/net/tun"),
  "nf_tables": () => withNetlink(NETLINK_NETFILTER, hasNfTables),
  // Nobody gives out leases in the namespaces of a run, and no switch runs there.
  "a DHCP server": () => false,
  "Open vSwitch": () => false,
} satisfies Record<string, () => boolean>;

export type Feature = keyof typeof probes;

const known = new Map<Feature, boolean>();

/** Asked in a namespace that is gone afterwards. */
export function hasFeature(feature: Feature): boolean {
  if (!known.has(feature)) known.set(feature, elsewhere(probes[feature]));
  return known.get(feature)!;
}

function elsewhere(probe: () => boolean): boolean {
  const home = openOwnNetns(), netns = makeNetns();
  try {
    return inNetns(netns, home, probe);
  } finally {
    closeFile(netns);
    closeFile(home);
  }
}

function hasKind(kind: string): () => boolean {
  return () => withNetlink(NETLINK_ROUTE, (socket) => knowsLinkKind(socket, kind));
}
