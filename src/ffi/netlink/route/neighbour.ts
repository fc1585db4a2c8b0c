/** Neighbours: `ip neighbour` (linux/neighbour.h). */
import { ENOENT } from "../../errno.ts";
import { attrTable, binary } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_REPLACE, type Writer } from "../wire.ts";
import { NDA_DST, NDA_LLADDR, NUD_PERMANENT, RTM_DELNEIGH, RTM_GETNEIGH, RTM_NEWNEIGH } from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";

const neighbourAttrs = attrTable("NDA", { dst: binary(NDA_DST), mac: binary(NDA_LLADDR) });

/** struct ndmsg: family u8, pads u8 u16, index s32, state u16, flags u8, type u8. */
const HEADER_BYTES = 12;

function writeHeader(writer: Writer, family: number, linkIndex: number, state: number): void {
  writer.u8(family).u8(0).u16(0).u32(linkIndex).u16(state).u8(0).u8(0);
}

export interface Neighbour {
  linkIndex: number;
  address: Uint8Array;
  mac?: Uint8Array;
  state?: number;
}

/** `ip neighbour replace`; permanent unless a state is given. */
export function setNeighbour(socket: NetlinkSocket, neighbour: Neighbour): void {
  socket.request({
    what: `RTM_NEWNEIGH ${neighbour.address.join(".")}`,
    type: RTM_NEWNEIGH,
    flags: NLM_F_CREATE | NLM_F_REPLACE,
    table: neighbourAttrs,
    fixedBytes: HEADER_BYTES,
    body: (writer) => {
      writeHeader(writer, familyOf(neighbour.address), neighbour.linkIndex, neighbour.state ?? NUD_PERMANENT);
      neighbourAttrs.encode(writer, { dst: neighbour.address, mac: neighbour.mac });
    },
  });
}

/** `ip neighbour del`. */
export function delNeighbour(socket: NetlinkSocket, neighbour: Neighbour): "deleted" | "absent" {
  try {
    socket.request({
      what: `RTM_DELNEIGH ${neighbour.address.join(".")}`,
      type: RTM_DELNEIGH,
      table: neighbourAttrs,
      fixedBytes: HEADER_BYTES,
      body: (writer) => {
        writeHeader(writer, familyOf(neighbour.address), neighbour.linkIndex, 0);
        neighbourAttrs.encode(writer, { dst: neighbour.address });
      },
    });
    return "deleted";
  } catch (error) {
    if (isNetlinkError(error, ENOENT)) return "absent";
    throw error;
  }
}

/** `ip neighbour show dev …`. */
export function listNeighbours(socket: NetlinkSocket, family: number, linkIndex: number): Neighbour[] {
  let found: Neighbour[] = [];
  socket.dump(
    { what: "RTM_GETNEIGH dump", type: RTM_GETNEIGH, body: (writer) => writeHeader(writer, family, 0, 0) },
    ({ type, payload }) => {
      if (type !== RTM_NEWNEIGH) return;
      const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
      const values = neighbourAttrs.decode(payload.subarray(HEADER_BYTES));
      if (view.getInt32(4, true) !== linkIndex || values.dst === undefined) return;
      found.push({ linkIndex, address: values.dst, mac: values.mac, state: view.getUint16(8, true) });
    },
    () => void (found = []),
  );
  return found;
}
