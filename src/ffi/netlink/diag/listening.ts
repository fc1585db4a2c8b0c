/** Sockets that wait for packets of anybody: `ss -ltun` (sock_diag(7)). */
import { AF_INET, AF_INET6 } from "../../socket/socket.ts";
import { UDP } from "../../../net/ip-protocol.ts";
import { attrTable, u8 } from "../attrs.ts";
import { listOf, type NetlinkSocket } from "../socket.ts";
import { INET_DIAG_SKV6ONLY, SOCK_DIAG_BY_FAMILY, TCP_CLOSE, TCP_LISTEN } from "../uapi/inet-diag.ts";
import type { Writer } from "../wire.ts";

export interface ListeningSocket {
  /** Zeros: every address. */
  address: Uint8Array;
  port: number;
  /** A socket of IPv6 for every address, to which packets of IPv4 do not come. */
  isV6Only: boolean;
  /** The link to which it is bound; 0 for any. */
  link: number;
  /** `socket:[INODE]` in /proc. */
  inode: number;
}

/**
 * struct inet_diag_sockid: source port u16be, destination port u16be, source 16, destination 16, link u32, cookie 8. A question
 * has zeros: any socket.
 */
const SOCKET_ID_BYTES = 48;
/** struct inet_diag_msg: family u8, state u8, timer u8, retransmissions u8, socket id, five times u32, of which the last is the inode. */
const SOCKET_ID_AT = 4,
  ADDRESS_AT = SOCKET_ID_AT + 4,
  LINK_AT = SOCKET_ID_AT + 36,
  INODE_AT = SOCKET_ID_AT + SOCKET_ID_BYTES + 16;
const ANSWER_BYTES = INODE_AT + 4;

const answerAttrs = attrTable("INET_DIAG", { isV6Only: u8(INET_DIAG_SKV6ONLY) });

/** `socket` is one of NETLINK_SOCK_DIAG, `protocol` a number of IP. Lists those of one family. */
export function listListening(socket: NetlinkSocket, family: 4 | 6, protocol: number): ListeningSocket[] {
  return listOf(
    socket,
    {
      what: `list sockets of protocol ${protocol}`,
      type: SOCK_DIAG_BY_FAMILY,
      body: (writer) => writeQuestion(writer, family, protocol),
    },
    ({ payload }, found) => {
      const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
      const { isV6Only = 0 } = answerAttrs.decode(payload.subarray(ANSWER_BYTES));
      found.push({
        address: payload.slice(ADDRESS_AT, ADDRESS_AT + (family === 4 ? 4 : 16)),
        port: view.getUint16(SOCKET_ID_AT, false),
        isV6Only: isV6Only !== 0,
        link: view.getUint32(LINK_AT, true),
        inode: view.getUint32(INODE_AT, true),
      });
    },
  );
}

/** struct inet_diag_req_v2: family u8, protocol u8, extensions u8, pad u8, bits of states u32, socket id. */
function writeQuestion(writer: Writer, family: 4 | 6, protocol: number): void {
  const states = 1 << (protocol === UDP ? TCP_CLOSE : TCP_LISTEN);
  writer.u8(family === 4 ? AF_INET : AF_INET6).u8(protocol).u8(0).u8(0).u32(states);
  writer.raw(new Uint8Array(SOCKET_ID_BYTES));
}
