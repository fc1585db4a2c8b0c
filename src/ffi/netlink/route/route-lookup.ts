/** `ip route get` (rtnetlink(7)). */
import { formatAddress } from "../../../net/address.ts";
import { EACCES, EAGAIN, EHOSTUNREACH, EINVAL, ENETUNREACH, EOPNOTSUPP } from "../../errno.ts";
import { attrTable, binary } from "../attrs.ts";
import { type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";
import { RTA_DST, RTM_GETROUTE } from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";
import { getLink, type Link } from "./link.ts";
import { type KernelRoute, readRoute, ROUTE_HEADER_BYTES } from "./route.ts";

/** No other attribute: the kernel rejects those it does not use. */
const questionAttrs = attrTable("RTA", { dst: binary(RTA_DST) });

/** No route, routes of type unreachable, prohibit, blackhole, throw, and a kernel without the address's family. */
const noRoute = [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, EAGAIN, EOPNOTSUPP];

/** The name of the link by which packets to the address leave; undefined when there is no route. */
export function linkTo(socket: NetlinkSocket, address: Uint8Array): string | undefined {
  return linkTowards(socket, address)?.name;
}

/** As `linkTo`, with all that the kernel says of the link. */
export function linkTowards(socket: NetlinkSocket, address: Uint8Array): Link | undefined {
  const route = routeTowards(socket, address);
  return route && getLink(socket, route.oif);
}

/** What packets to the address take, with their source address as `preferredSource`; undefined when there is no route. */
export function routeTowards(socket: NetlinkSocket, address: Uint8Array): KernelRoute | undefined {
  let route: KernelRoute | undefined;
  const request: NetlinkRequest = {
    what: `RTM_GETROUTE ${formatAddress(address)}`,
    type: RTM_GETROUTE,
    table: questionAttrs,
    fixedBytes: ROUTE_HEADER_BYTES,
    body: (writer) => {
      writer.u8(familyOf(address)).u8(address.length * 8);
      for (let left = ROUTE_HEADER_BYTES - 2; left > 0; left--) writer.u8(0);
      questionAttrs.encode(writer, { dst: address });
    },
  };
  return tryRequest(socket, request, noRoute, ({ payload }) => route = readRoute(payload)) ? route : undefined;
}
