/** What ADD chooses by a look at the host: a name for the veth, hairpin mode, an MTU. */
import type { Host } from "../../../contract/host.ts";
import { readSysctl } from "../../../ffi/sysctl.ts";
import { getLink, linkIndex } from "../../../ffi/netlink/route/link.ts";
import { defaultRoute } from "../../../ffi/netlink/route/route.ts";
import { vrfTable } from "../../../resources/routing/shared/routing-tables.ts";
import type { PodmanBridgeSpec } from "../../../resources/netavark/shared/bridge.ts";

/**
 * `veth0` if it is free, otherwise a number that follows a taken one. Doubling and halving finds it without a look at all
 * links, of which there may be hundreds.
 */
export function freeVethName(host: Host): string {
  const isTaken = (number: number) => linkIndex(host.route, `veth${number}`) !== undefined;
  let taken = -1, free = 0;
  while (isTaken(free)) [taken, free] = [free, 2 * free + 1];
  while (free - taken > 1) {
    const between = Math.floor((taken + free) / 2);
    if (isTaken(between)) taken = between;
    else free = between;
  }
  return `veth${free}`;
}

/**
 * Whether br_netfilter passes packets within a bridge to the rules. Then a container's packet to its own published port is
 * translated within the bridge, and has to leave by the bridge port that it came from.
 */
export function hasFilteredBridges(): boolean {
  return ["iptables", "ip6tables"].some((what) => readSysctl(`net/bridge/bridge-nf-call-${what}`) === "1");
}

/** The MTU of the bridge; for a new one, that of the link by which packets leave the host. */
export function usualMtu({ name, isManaged, vrf }: PodmanBridgeSpec, host: Host): number | undefined {
  const bridge = getLink(host.route, name);
  if (bridge !== undefined || !isManaged) return bridge?.mtu;
  const master = vrf === undefined ? undefined : getLink(host.route, vrf);
  const way = defaultRoute(host.route, master && vrfTable(master));
  return way === undefined ? undefined : getLink(host.route, way.oif)?.mtu;
}
