/**
 * Announces a container's addresses to its neighbours: gratuitous ARP and unsolicited neighbour advertisements (RFC 5944,
 * 4.6; RFC 4861, 7.2.6). Otherwise they keep sending to the MAC of the container that had the address before. Owns
 * nothing in the kernel, so DEL does nothing.
 *
 * With the sysctls of `announcing` the kernel sends announcements when the link comes up, and whenever its MAC is set.
 * This resource sets the MAC again: a bridge drops packets from a port until it has noticed that the port is up, so the
 * first announcement may be lost.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { linkIndex, setLink } from "../../ffi/netlink/route/link.ts";
import { parseMac } from "../../net/mac.ts";

interface AnnouncementSpec {
  ifName: string;
  /** The MAC that the link has already. */
  mac: string;
}

/** Sysctls for `AddressingSpec`. */
export function announcing(ifName: string): Record<string, string> {
  return { [`ipv4/conf/${ifName}/arp_notify`]: "1", [`ipv6/conf/${ifName}/ndisc_notify`]: "1" };
}

export const announcementKind: ResourceKind<AnnouncementSpec> = {
  kind: "announcement",
  apply({ ifName, mac }, host) {
    const { route } = host.container!;
    setLink(route, { index: linkIndex(route, ifName)!, name: ifName }, { address: parseMac(mac) });
  },
  remove: () => {},
  verify: () => [],
  describe: ({ ifName }) => `addresses on ${ifName} announced to the neighbours`,
};

export const announcement = resource(announcementKind);
