/** The number by which a namespace's links name another namespace, as in `Link.linkNetnsId` (RTM_GETNSID). */
import { attrTable, s32, u32 } from "../attrs.ts";
import { listOf, type NetlinkRequest, type NetlinkSocket } from "../socket.ts";
import { NETNSA_FD, NETNSA_NSID, NETNSA_TARGET_NSID, RTM_GETNSID, RTM_NEWNSID } from "../uapi/rtnetlink.ts";

/** struct rtgenmsg: a family, filled up to four bytes. */
const HEADER_BYTES = 4;

const attributes = attrTable("NETNSA", {
  id: s32(NETNSA_NSID),
  fd: u32(NETNSA_FD),
  target: s32(NETNSA_TARGET_NSID),
});

/**
 * Undefined when no link of the socket's namespace has anything to do with the other namespace. With `target`, it is the
 * number that the namespace with that number has for it.
 */
export function netnsIdIn(socket: NetlinkSocket, netnsFd: number, target?: number): number | undefined {
  let found: number | undefined;
  socket.request({
    what: "RTM_GETNSID",
    type: RTM_GETNSID,
    table: attributes,
    fixedBytes: HEADER_BYTES,
    body: (writer) => {
      writer.u32(0);
      attributes.encode(writer, { fd: netnsFd, target });
    },
  }, ({ type, payload }) => {
    const id = type === RTM_NEWNSID ? idOf(payload) : undefined;
    if (id !== undefined && id >= 0) found = id;
  });
  return found;
}

/** The numbers of all namespaces that the socket's has to do with, as long as anything holds them. */
export function netnsIds(socket: NetlinkSocket): number[] {
  const question: NetlinkRequest = { what: "RTM_GETNSID dump", type: RTM_GETNSID, body: (writer) => writer.u32(0) };
  return listOf(socket, question, ({ type, payload }, ids) => {
    const id = type === RTM_NEWNSID ? idOf(payload) : undefined;
    if (id !== undefined) ids.push(id);
  });
}

function idOf(payload: Uint8Array): number | undefined {
  return attributes.decode(payload.subarray(HEADER_BYTES)).id;
}
