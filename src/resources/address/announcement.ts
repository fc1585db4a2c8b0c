/**
 * Telling the neighbours who has an address now: gratuitous ARP and unsolicited neighbour advertisements (RFC 5944, 4.6;
 * RFC 4861, 7.2.6). Otherwise they go on sending to the MAC of the container that had the address before.
 *
 * With `announcing` among its sysctls the kernel tells them on its own when the link comes up with its addresses, and
 * again whenever its MAC is set. The second is this resource: a bridge drops what comes from a port until it has
 * noticed that the port is up, the first telling included. Nothing is made, so nothing is removed.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { linkIndex, setLink } from "../../ffi/netlink/route/link.ts";
import { parseMac } from "../../net/mac.ts";

export interface AnnouncementSpec {
  ifName: string;
  /** Which it has already. */
  mac: string;
}

/** For `AddressingSpec.sysctls`. */
export function announcing(ifName: string): Record<string, string> {
  return { [`ipv4/conf/${ifName}/arp_notify`]: "1", [`ipv6/conf/${ifName}/ndisc_notify`]: "1" };
}

export const announcementKind: ResourceKind<AnnouncementSpec> = {
  kind: "announcement",
  unmade: undefined,
  apply({ ifName, mac }, host) {
    const { route } = host.container!;
    setLink(route, { index: linkIndex(route, ifName)!, name: ifName }, { address: parseMac(mac) });
  },
  remove: () => {},
  verify: () => [],
  describe: ({ ifName }) => `addresses on ${ifName} announced to the neighbours`,
};

export const announcement = resource(announcementKind);
