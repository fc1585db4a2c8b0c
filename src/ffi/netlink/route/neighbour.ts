/** `ip neighbour get`: which MAC address the host has for an address behind a link (linux/neighbour.h). */
import { formatAddress } from "../../../net/address.ts";
import { formatMac } from "../../../net/mac.ts";
import { EINVAL, ENODEV, ENOENT, EOPNOTSUPP } from "../../errno.ts";
import { attrTable, binary } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { RTM_GETNEIGH } from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";
import type { Link } from "./link.ts";

const NDMSG_BYTES = 12;
const neighbourAttrs = attrTable("NDA", { dst: binary(1), mac: binary(2) });

/** Undefined where the host has none, or the kernel cannot be asked for one (before Linux 5.0). */
export function neighbourMac(
  socket: NetlinkSocket,
  link: Pick<Link, "index">,
  address: Uint8Array,
): string | undefined {
  let mac: Uint8Array | undefined;
  try {
    socket.request({
      what: `RTM_GETNEIGH ${formatAddress(address)}`,
      type: RTM_GETNEIGH,
      table: neighbourAttrs,
      fixedBytes: NDMSG_BYTES,
      body(writer) {
        writer.u8(familyOf(address)).u8(0).u16(0).u32(link.index).u16(0).u8(0).u8(0);
        neighbourAttrs.encode(writer, { dst: address });
      },
    }, ({ payload }) => void (mac = neighbourAttrs.decode(payload.subarray(NDMSG_BYTES)).mac));
  } catch (error) {
    if (isNetlinkError(error, ENOENT, ENODEV, EINVAL, EOPNOTSUPP)) return undefined;
    throw error;
  }
  return mac?.length === 6 ? formatMac(mac) : undefined;
}
