/** The link by which packets leave the host. */
import { getLink } from "../../ffi/netlink/route/link.ts";
import { defaultRoute } from "../../ffi/netlink/route/route.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";

export function defaultParent(): string {
  const socket = openNetlink(NETLINK_ROUTE);
  try {
    const way = defaultRoute(socket), link = way && getLink(socket, way.oif);
    if (link !== undefined) return link.name;
  } finally {
    socket.close();
  }
  throw new Error("failed to get default route interface");
}
