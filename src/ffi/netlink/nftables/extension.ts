/**
 * xtables' matches and targets in rules of nf_tables, as iptables-nft writes it (linux/netfilter/nf_tables_compat.h).
 *
 *     -m comment --comment …    [ match name comment rev 0 ]
 *     -j MASQUERADE             [ target name MASQUERADE rev 0 ]
 */
import { attrTable, binary, text, u32be } from "../attrs.ts";
import * as nft from "../uapi/nf-tables.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { EINVAL, ENOENT, EPROTONOSUPPORT } from "../../errno.ts";

export const matchAttrs = attrTable("NFTA_MATCH", {
  name: text(nft.NFTA_MATCH_NAME),
  revision: u32be(nft.NFTA_MATCH_REV),
  info: binary(nft.NFTA_MATCH_INFO),
});

const match = expression("match", matchAttrs);

/** struct xt_comment_info: the text with its NUL in 256 bytes. Like iptables, rejects longer texts. */
const COMMENT_BYTES = 256;

export function commentMatch(text: string): Expression {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length >= COMMENT_BYTES) {
    throw new Error(`iptables comment of ${bytes.length} bytes, 255 at most: ${text}`);
  }
  const info = new Uint8Array(COMMENT_BYTES);
  info.set(bytes);
  return match({ name: "comment", revision: 0, info });
}

/**
 * struct xt_conntrack_mtinfo3 (linux/netfilter/xt_conntrack.h): unused addresses and ports, and the states that match.
 * `bits` are XT_CONNTRACK_STATE_BIT of the states.
 */
export function connectionState(bits: number): Expression {
  const XT_CONNTRACK_STATE = 1, FLAGS_AT = 146, STATES_AT = 150;
  const info = new Uint8Array(168);
  info[FLAGS_AT] = XT_CONNTRACK_STATE;
  info[STATES_AT] = bits;
  return match({ name: "conntrack", revision: 3, info });
}

/** struct xt_addrtype_info_v1 (linux/netfilter/xt_addrtype.h): types of source and of destination, flags. */
export const localDestination: Expression = (() => {
  const XT_ADDRTYPE_LOCAL = 4, DESTINATION_AT = 2;
  const info = new Uint8Array(8);
  info[DESTINATION_AT] = XT_ADDRTYPE_LOCAL;
  return match({ name: "addrtype", revision: 1, info });
})();

export const MULTIPORT_LIMIT = 15;
const XT_MULTIPORT_DESTINATION = 1;

/** struct xt_multiport_v1 (linux/netfilter/xt_multiport.h): flags u8, count u8, ports u16 × 15, ranges, invert. */
export function destinationPorts(ports: readonly number[]): Expression {
  if (ports.length > MULTIPORT_LIMIT) throw new Error(`iptables multiport of ${ports.length} ports, 15 at most`);
  const info = new Uint8Array(48), view = new DataView(info.buffer);
  info[0] = XT_MULTIPORT_DESTINATION;
  info[1] = ports.length;
  ports.forEach((port, index) => view.setUint16(2 + 2 * index, port, true));
  return match({ name: "multiport", revision: 1, info });
}

/**
 * struct xt_sctp_info (linux/netfilter/xt_sctp.h): ranges of destination and source ports, a bitmap of chunks, flags of
 * four chunk types (255: none), and which of these fields are checked.
 */
export function sctpDestinationPort(port: number): Expression {
  const XT_SCTP_DEST_PORTS = 2, CHUNK_FLAGS_AT = 268, CHECKED_AT = 284;
  const info = new Uint8Array(296), view = new DataView(info.buffer);
  view.setUint16(0, port, true);
  view.setUint16(2, port, true);
  for (let index = 0; index < 4; index++) info[CHUNK_FLAGS_AT + 3 * index] = 0xff;
  info[CHECKED_AT] = XT_SCTP_DEST_PORTS;
  return match({ name: "sctp", revision: 0, info });
}

/** The text of the rule's comment match, or undefined. */
export function matchedComment(rule: readonly FoundExpression[]): string | undefined {
  const info = infoOf("comment", rule), end = info?.indexOf(0) ?? -1;
  return info && new TextDecoder().decode(end < 0 ? info : info.subarray(0, end));
}

/** The ports that `destinationPorts` was given, or undefined. */
export function matchedPorts(rule: readonly FoundExpression[]): number[] | undefined {
  const info = infoOf("multiport", rule);
  if (info?.[0] !== XT_MULTIPORT_DESTINATION) return undefined;
  const view = new DataView(info.buffer, info.byteOffset, info.byteLength);
  return Array.from({ length: info[1]! }, (_, index) => view.getUint16(2 + 2 * index, true));
}

function infoOf(wanted: string, rule: readonly FoundExpression[]): Uint8Array | undefined {
  for (const { name, data } of rule) {
    if (name !== "match") continue;
    const values = matchAttrs.decode(data);
    if (values.name === wanted && values.info !== undefined) return values.info;
  }
  return undefined;
}

export const targetAttrs = attrTable("NFTA_TARGET", {
  name: text(nft.NFTA_TARGET_NAME),
  revision: u32be(nft.NFTA_TARGET_REV),
  info: binary(nft.NFTA_TARGET_INFO),
});

const target = expression("target", targetAttrs);

/**
 * For IPv4 struct nf_nat_ipv4_multi_range_compat with one range and no flags; for IPv6 struct nf_nat_range of zeros. Both
 * with the padding of XT_ALIGN.
 */
export function masqueradeTarget(addressLength: number): Expression {
  const info = new Uint8Array(addressLength === 4 ? 24 : 40);
  if (addressLength === 4) info[0] = 1;
  return target({ name: "MASQUERADE", revision: 0, info });
}

/** struct xt_mark_tginfo2 (linux/netfilter/xt_mark.h): sets the bits of the mask to those of the value. */
export function markTarget(value: number, mask: number): Expression {
  const info = new Uint8Array(8), view = new DataView(info.buffer);
  view.setUint32(0, value >>> 0, true);
  view.setUint32(4, mask >>> 0, true);
  return target({ name: "MARK", revision: 2, info });
}

/** struct nf_nat_range2 (linux/netfilter/nf_nat.h): flags u32, two addresses of 16 bytes, two ports and a base. */
export function dnatTarget(address: Uint8Array, port: number): Expression {
  const NF_NAT_RANGE_MAP_IPS = 1, NF_NAT_RANGE_PROTO_SPECIFIED = 2;
  const info = new Uint8Array(48), view = new DataView(info.buffer);
  view.setUint32(0, NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED, true);
  info.set(address, 4);
  info.set(address, 20);
  view.setUint16(36, port, false);
  view.setUint16(38, port, false);
  return target({ name: "DNAT", revision: 2, info });
}

export interface Extension {
  kind: "match" | "target";
  name: string;
  revision: number;
}

const compatAttrs = attrTable("NFTA_COMPAT", {
  name: text(nft.NFTA_COMPAT_NAME),
  revision: u32be(nft.NFTA_COMPAT_REV),
  type: u32be(nft.NFTA_COMPAT_TYPE),
});

/**
 * Whether nf_tables can use the extension (NFNL_MSG_COMPAT_GET). iptables-nft asks in the same way. The kernel loads the
 * module, as it would for a rule. Undefined when the kernel has no nft_compat: then nf_tables can use none of them.
 */
export function hasExtension(socket: NetlinkSocket, { kind, name, revision }: Extension): boolean | undefined {
  try {
    socket.request({
      what: `get ${kind} ${name}`,
      type: (nft.NFNL_SUBSYS_NFT_COMPAT << 8) | nft.NFNL_MSG_COMPAT_GET,
      body(writer) {
        writer.u8(nft.NFPROTO_IPV4).u8(0).u16be(0);
        compatAttrs.encode(writer, { name, revision, type: kind === "match" ? 0 : 1 });
      },
    });
    return true;
  } catch (error) {
    if (isNetlinkError(error, ENOENT, EPROTONOSUPPORT)) return false;
    if (isNetlinkError(error, EINVAL)) return undefined;
    throw error;
  }
}
