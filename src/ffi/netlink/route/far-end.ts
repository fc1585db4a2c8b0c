/** The other end of a link, in another namespace: the kernel looks there for us (IFLA_TARGET_NETNSID, Linux 4.16). */
import { formatMac } from "../../../net/mac.ts";
import { EACCES, EINVAL, ENODEV, EPERM } from "../../errno.ts";
import { attrTable, binary, u32 } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { IFLA_ADDRESS, IFLA_EXT_MASK, IFLA_TARGET_NETNSID, RTEXT_FILTER_SKIP_STATS } from "../uapi/if-link.ts";
import { RTM_GETLINK, RTM_NEWLINK } from "../uapi/rtnetlink.ts";
import type { Link } from "./link.ts";
import { linkHeader } from "./link-kinds.ts";

const attributes = attrTable("IFLA", {
  address: binary(IFLA_ADDRESS),
  extMask: u32(IFLA_EXT_MASK),
  netnsId: u32(IFLA_TARGET_NETNSID),
});

/**
 * Undefined when the link has none in another namespace, or when that namespace has ended: the kernel removes its links a
 * moment later. `mac` is "" when we may not look into it.
 */
export function farEnd(socket: NetlinkSocket, { link, linkNetnsId: netnsId }: Link): { mac: string } | undefined {
  if (link === undefined || netnsId === undefined) return undefined;
  let mac = "";
  try {
    socket.request({
      what: `RTM_GETLINK ${link} in namespace ${netnsId}`,
      type: RTM_GETLINK,
      body: (writer) => {
        linkHeader.write(writer, { index: link });
        attributes.encode(writer, { extMask: RTEXT_FILTER_SKIP_STATS, netnsId });
      },
    }, ({ type, payload }) => {
      if (type !== RTM_NEWLINK) return;
      const { address } = attributes.decode(payload.subarray(linkHeader.bytes));
      if (address !== undefined) mac = formatMac(address);
    });
  } catch (error) {
    if (isNetlinkError(error, EINVAL, ENODEV)) return undefined;
    if (!isNetlinkError(error, EACCES, EPERM)) throw error;
  }
  return { mac };
}
