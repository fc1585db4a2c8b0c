/** `ip neighbour get`: which MAC address the host has for an address behind a link (linux/neighbour.h). */
import { formatAddress } from "../../../net/address.ts";
import { formatMac, parseMac } from "../../../net/mac.ts";
import { EINVAL, ENODEV, ENOENT, EOPNOTSUPP } from "../../errno.ts";
import { AF_BRIDGE, AF_INET, AF_INET6 } from "../../socket/socket.ts";
import { attrTable, binary, u32 } from "../attrs.ts";
import { isNetlinkError, listOf, type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";
import { RTM_GETNEIGH } from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";
import type { Link } from "./link.ts";

/** struct ndmsg: family u8, three bytes, index s32, state u16, flags u8, type u8. */
const NDMSG_BYTES = 12, INDEX_AT = 4, STATE_AT = 8;
const neighbourAttrs = attrTable("NDA", { dst: binary(1), mac: binary(2) });
const entryAttrs = attrTable("NDA", { mac: binary(2), master: u32(9) });

export interface Neighbour {
  /** Undefined while it has not answered. */
  mac: string | undefined;
  /** Bits of NUD_*. */
  state: number;
}

/** Undefined where the host has none, or the kernel cannot be asked for one (before Linux 5.0). */
export function neighbourMac(
  socket: NetlinkSocket,
  link: Pick<Link, "index">,
  address: Uint8Array,
): string | undefined {
  return findNeighbour(socket, link, address)?.mac;
}

/** As `neighbourMac`. */
export function findNeighbour(
  socket: NetlinkSocket,
  link: Pick<Link, "index">,
  address: Uint8Array,
): Neighbour | undefined {
  let found: Neighbour | undefined;
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
    }, ({ payload }) => {
      const { mac } = neighbourAttrs.decode(payload.subarray(NDMSG_BYTES));
      found = { mac: mac?.length === 6 ? formatMac(mac) : undefined, state: payload[STATE_AT]! };
    });
  } catch (error) {
    if (isNetlinkError(error, ENOENT, ENODEV, EINVAL, EOPNOTSUPP)) return undefined;
    throw error;
  }
  return found;
}

export function countNeighbours(socket: NetlinkSocket, family: 4 | 6): number {
  const request: NetlinkRequest = {
    what: "RTM_GETNEIGH dump",
    type: RTM_GETNEIGH,
    body: (writer) => {
      writer.u8(family === 4 ? AF_INET : AF_INET6).u8(0).u16(0).u32(0).u16(0).u8(0).u8(0);
    },
  };
  return listOf<true>(socket, request, (_message, found) => void found.push(true)).length;
}

/** `bridge fdb get MAC br BRIDGE`: the index of the port behind which the bridge has seen the address. */
export function portBehind(socket: NetlinkSocket, bridge: Pick<Link, "index">, mac: string): number | undefined {
  let port: number | undefined;
  const request: NetlinkRequest = {
    what: `RTM_GETNEIGH ${mac}`,
    type: RTM_GETNEIGH,
    table: entryAttrs,
    fixedBytes: NDMSG_BYTES,
    body(writer) {
      writer.u8(AF_BRIDGE).u8(0).u16(0).u32(0).u16(0).u8(0).u8(0);
      entryAttrs.encode(writer, { mac: parseMac(mac), master: bridge.index });
    },
  };
  tryRequest(socket, request, [ENOENT, ENODEV, EINVAL, EOPNOTSUPP], ({ payload }) => {
    port = new DataView(payload.buffer, payload.byteOffset).getInt32(INDEX_AT, true);
  });
  return port;
}
