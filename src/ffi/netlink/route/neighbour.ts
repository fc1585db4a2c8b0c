/** `ip neighbour get`: which MAC address the host has for an address behind a link (linux/neighbour.h). */
import { formatAddress } from "../../../net/address.ts";
import { formatMac, parseMac } from "../../../net/mac.ts";
import { EINVAL, ENODEV, ENOENT, EOPNOTSUPP } from "../../errno.ts";
import { AF_BRIDGE, AF_INET, AF_INET6 } from "../../socket/socket.ts";
import { type AttrsOf, attrTable, binary, u16, u32 } from "../attrs.ts";
import { listOf, type NetlinkRequest, type NetlinkSocket, tryRequest } from "../socket.ts";
import { RTM_GETNEIGH } from "../uapi/rtnetlink.ts";
import type { Writer } from "../wire.ts";
import { familyOf } from "./address.ts";
import type { Link } from "./link.ts";

/** struct ndmsg: family u8, three bytes, index s32, state u16, flags u8, type u8. */
const NDMSG_BYTES = 12, INDEX_AT = 4, STATE_AT = 8;
const neighbourAttrs = attrTable("NDA", { dst: binary(1), mac: binary(2), vlan: u16(5), master: u32(9) });

export interface Neighbour {
  /** Undefined while it has not answered. */
  mac: string | undefined;
}

/** Undefined where the host has none, or the kernel cannot be asked for one (before Linux 5.0). */
export function findNeighbour(
  socket: NetlinkSocket,
  { index }: Pick<Link, "index">,
  address: Uint8Array,
): Neighbour | undefined {
  const question = { family: familyOf(address), index, what: formatAddress(address), values: { dst: address } };
  return getNeighbour(socket, question, (entry) => {
    const { mac } = neighbourAttrs.decode(entry.subarray(NDMSG_BYTES));
    return { mac: mac?.length === 6 ? formatMac(mac) : undefined };
  });
}

interface NeighbourQuestion {
  family: number;
  index?: number;
  what: string;
  values: Partial<AttrsOf<typeof neighbourAttrs.rows>>;
}

function getNeighbour<T>(
  socket: NetlinkSocket,
  { family, index, what, values }: NeighbourQuestion,
  read: (entry: Uint8Array) => T,
): T | undefined {
  let found: T | undefined;
  const request: NetlinkRequest = {
    what: `RTM_GETNEIGH ${what}`,
    type: RTM_GETNEIGH,
    table: neighbourAttrs,
    fixedBytes: NDMSG_BYTES,
    body(writer) {
      writeHeader(writer, family, index);
      neighbourAttrs.encode(writer, values);
    },
  };
  tryRequest(socket, request, [ENOENT, ENODEV, EINVAL, EOPNOTSUPP], ({ payload }) => void (found = read(payload)));
  return found;
}

function writeHeader(writer: Writer, family: number, index = 0): void {
  writer.u8(family).u8(0).u16(0).u32(index).u16(0).u8(0).u8(0);
}

export function countNeighbours(socket: NetlinkSocket, family: 4 | 6): number {
  return listNeighbours(socket, family === 4 ? AF_INET : AF_INET6).length;
}

/** `ip neighbour show` of a family; of AF_BRIDGE, `bridge fdb show`. */
export function listNeighbours(socket: NetlinkSocket, family: number) {
  const body = (writer: Writer) => writeHeader(writer, family);
  return listOf<object>(socket, { what: "RTM_GETNEIGH dump", type: RTM_GETNEIGH, body }, ({ payload }, found) => {
    const { mac, ...values } = neighbourAttrs.decode(payload.subarray(NDMSG_BYTES));
    const view = new DataView(payload.buffer, payload.byteOffset), state = view.getUint16(STATE_AT, true);
    const states = STATES.filter((_, bit) => state & (1 << bit)).join(" ");
    found.push({ linkIndex: view.getInt32(INDEX_AT, true), ...values, mac: mac && formatMac(mac), states });
  });
}

/** NUD_*, by their bits. */
const STATES = ["incomplete", "reachable", "stale", "delay", "probe", "failed", "noarp", "permanent"];

/**
 * `bridge fdb get MAC br BRIDGE vlan VLAN`: the index of the port behind which the bridge has seen the address. A bridge
 * that filters VLANs is asked of one, and another one of none.
 */
export function portBehind(
  socket: NetlinkSocket,
  bridge: Pick<Link, "index">,
  mac: string,
  vlan?: number,
): number | undefined {
  const question = { family: AF_BRIDGE, what: mac, values: { mac: parseMac(mac), vlan, master: bridge.index } };
  return getNeighbour(
    socket,
    question,
    (entry) => new DataView(entry.buffer, entry.byteOffset).getInt32(INDEX_AT, true),
  );
}
