/** The host takes a container's address for another one's: somebody has announced it, or the entry is of a former container. */
import type { Host } from "../../../contract/host.ts";
import { getLink, listLinks } from "../../../ffi/netlink/route/link.ts";
import { findNeighbour } from "../../../ffi/netlink/route/neighbour.ts";
import { linkTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { formatAddress, type Prefix } from "../../../net/address.ts";

export function takenForAnother(ifName: string, addresses: readonly Prefix[], { route, container }: Host): string[] {
  const links = listLinks(container!.route), own = links.find(({ name }) => name === ifName);
  const side = own?.kind === "veth" && own.link !== undefined ? getLink(route, own.link) : undefined;
  if (own === undefined || side === undefined) return [];
  return addresses.flatMap(({ bytes }) => {
    const link = linkTowards(route, bytes);
    // The host's way there may be to another container of this address.
    if (link === undefined || link.index !== (side.master ?? side.index)) return [];
    const mac = findNeighbour(route, link, bytes)?.mac, address = formatAddress(bytes);
    // Linux answers for all of its addresses on each of its links.
    if (mac === undefined || links.some((each) => each.mac === mac)) return [];
    return [
      `the host sends what is for ${address} to ${mac}, not to ${own.mac}: ` +
      `'ip neighbour del ${address} dev ${link.name}' makes it ask again`,
    ];
  });
}
