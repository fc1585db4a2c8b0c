/** `ip route get` (rtnetlink(7)). */
import { formatAddress } from "../../../net/address.ts";
import { EACCES, EAGAIN, EHOSTUNREACH, EINVAL, ENETUNREACH } from "../../errno.ts";
import { attrTable, binary } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { RTA_DST, RTM_GETROUTE } from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";
import { getLink } from "./link.ts";
import { readRoute, ROUTE_HEADER_BYTES } from "./route.ts";

/** No other attribute: the kernel rejects those it does not use. */
const questionAttrs = attrTable("RTA", { dst: binary(RTA_DST) });

/** No route, and routes of type unreachable, prohibit, blackhole, throw. */
const noRoute = [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, EAGAIN];

/** The name of the link by which packets to the address leave; undefined when there is no route. */
export function linkTo(socket: NetlinkSocket, address: Uint8Array): string | undefined {
  let oif = 0;
  try {
    socket.request({
      what: `RTM_GETROUTE ${formatAddress(address)}`,
      type: RTM_GETROUTE,
      table: questionAttrs,
      fixedBytes: ROUTE_HEADER_BYTES,
      body: (writer) => {
        writer.u8(familyOf(address)).u8(address.length * 8);
        for (let left = ROUTE_HEADER_BYTES - 2; left > 0; left--) writer.u8(0);
        questionAttrs.encode(writer, { dst: address });
      },
    }, ({ payload }) => oif = readRoute(payload).oif);
  } catch (error) {
    if (isNetlinkError(error, ...noRoute)) return undefined;
    throw error;
  }
  return getLink(socket, oif)?.name;
}
