/** veth: a pair of links, the second end described inside the first (linux/veth.h). */
import { type AttrsOf, attrTable, custom, type Row } from "../../attrs.ts";
import {
  IFLA_ADDRESS,
  IFLA_IFNAME,
  IFLA_MTU,
  IFLA_NET_NS_FD,
  IFLA_TXQLEN,
  VETH_INFO_PEER,
} from "../../uapi/if-link.ts";
import { binary, text, u32 } from "../../attrs.ts";
import { linkHeader } from "../link-header.ts";

const peerAttrs = attrTable("IFLA", {
  ifName: text(IFLA_IFNAME),
  address: binary(IFLA_ADDRESS),
  mtu: u32(IFLA_MTU),
  txQueueLength: u32(IFLA_TXQLEN),
  netnsFd: u32(IFLA_NET_NS_FD),
});

/** A peer is a whole link message: header, then attributes. */
const peer: Row<AttrsOf<typeof peerAttrs.rows>> = custom(VETH_INFO_PEER, {
  write(writer, value) {
    linkHeader.write(writer, {});
    peerAttrs.encode(writer, value);
  },
  read: (payload) => peerAttrs.decode(payload.subarray(linkHeader.bytes)),
});

export const vethData = attrTable("IFLA_INFO_DATA(veth)", { peer });
