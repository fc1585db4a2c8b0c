/** The addresses that a bridge has which is not ours. */
import { listAddresses } from "../../ffi/netlink/route/address.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";
import { formatAddress, isLinkLocal } from "../../net/address.ts";
import { NO_UNMANAGED_BRIDGE } from "../../resources/netavark/shared/failure.ts";

/** Where aardvark-dns can listen. */
export function bridgeOwnAddresses(bridge: string): string[] {
  const socket = openNetlink(NETLINK_ROUTE);
  try {
    const index = linkIndex(socket, bridge);
    if (index === undefined) throw new Error(NO_UNMANAGED_BRIDGE);
    const addresses = listAddresses(socket, index);
    const usable = addresses.filter(({ bytes }) => bytes.length === 4 || !isLinkLocal(bytes));
    if (usable.length > 0) return usable.map(({ bytes }) => formatAddress(bytes));
  } finally {
    socket.close();
  }
  throw new Error(
    `bridge '${bridge}' in unmanaged mode has no usable IP addresses. Aardvark-dns requires at least one ` +
      "address (should not be an IPv6 link-local address) to bind to. Please add an IP address or disable DNS for " +
      "this network (--disable-dns).",
  );
}
