/** The host takes a container's address for another one's: somebody has announced it, or the entry is of a former container. */
import type { Host } from "../../../contract/host.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { neighbourMac } from "../../../ffi/netlink/route/neighbour.ts";
import { linkTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { formatAddress, type Prefix } from "../../../net/address.ts";

export function takenForAnother(ifName: string, addresses: readonly Prefix[], { route, container }: Host): string[] {
  const own = getLink(container!.route, ifName)?.mac;
  if (own === undefined) return [];
  return addresses.flatMap(({ bytes }) => {
    const link = linkTowards(route, bytes), mac = link && neighbourMac(route, link, bytes);
    if (mac === undefined || mac === own) return [];
    const address = formatAddress(bytes);
    return [
      `the host sends what is for ${address} to ${mac}, not to ${own}: ` +
      `'ip neighbour del ${address} dev ${link!.name}' makes it ask again`,
    ];
  });
}
