/** The link by which packets leave the host. */
import { AF_INET, AF_INET6 } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { listRoutes } from "../../ffi/netlink/route/route.ts";
import { NETLINK_ROUTE, openNetlink } from "../../ffi/netlink/socket.ts";

export function defaultParent(): string {
  const socket = openNetlink(NETLINK_ROUTE);
  try {
    for (const family of [AF_INET, AF_INET6]) {
      const way = listRoutes(socket, family).find(({ dst, oif }) => dst.bits === 0 && oif !== 0);
      const link = way && getLink(socket, way.oif);
      if (link !== undefined) return link.name;
    }
  } finally {
    socket.close();
  }
  throw new Error("failed to get default route interface");
}
