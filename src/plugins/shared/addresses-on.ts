/** The current addresses of links in the container. */
import { ENODEV } from "../../ffi/errno.ts";
import { type LinkAddress, listAddresses } from "../../ffi/netlink/route/address.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { isNetlinkError } from "../../ffi/netlink/netlink-error.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { formatAddress } from "../../net/address.ts";
import type { Host } from "../../contract/host.ts";

/** The addresses on the link `ifName`, or on all links. */
export function addressesOn({ container }: Host, ifName?: string): Set<string> {
  const texts = new Set<string>();
  if (container === undefined) return texts;
  const index = ifName === undefined ? 0 : linkIndex(container.route, ifName);
  if (index === undefined) return texts;
  for (const { bytes } of addressesOf(container.route, index)) texts.add(formatAddress(bytes));
  return texts;
}

/** The link may go after it was found: an ADD beside this call takes it back, or the container removes it. */
function addressesOf(route: NetlinkSocket, index: number): LinkAddress[] {
  try {
    return listAddresses(route, index);
  } catch (error) {
    if (isNetlinkError(error, ENODEV)) return [];
    throw error;
  }
}
