/** veth: a pair of links, the second end described inside the first (linux/veth.h). */
import { type AttrsOf, attrTable, binary, custom, type Row, text, u32 } from "../../attrs.ts";
import {
  IFLA_ADDRESS,
  IFLA_IFNAME,
  IFLA_MTU,
  IFLA_NET_NS_FD,
  IFLA_TXQLEN,
  VETH_INFO_PEER,
} from "../../uapi/if-link.ts";
import { linkHeader } from "../link-header.ts";
import type { LinkKind } from "../link-kind.ts";

const peerAttrs = attrTable("IFLA", {
  ifName: text(IFLA_IFNAME),
  address: binary(IFLA_ADDRESS),
  mtu: u32(IFLA_MTU),
  txQueueLength: u32(IFLA_TXQLEN),
  netnsFd: u32(IFLA_NET_NS_FD),
});

/** A peer is a complete link message: header, then attributes. */
const peer: Row<AttrsOf<typeof peerAttrs.rows>> = custom(VETH_INFO_PEER, {
  write(writer, value) {
    linkHeader.write(writer, {});
    peerAttrs.encode(writer, value);
  },
  read: (payload) => peerAttrs.decode(payload.subarray(linkHeader.bytes)),
});

const vethData = attrTable("IFLA_INFO_DATA(veth)", { peer });

export function vethKind(values: AttrsOf<typeof vethData.rows>): LinkKind {
  return { name: "veth", write: (writer) => vethData.encode(writer, values) };
}
