/**
 * An xtables match in a rule, as iptables-nft writes it (linux/netfilter/nf_tables_compat.h).
 *
 *     -m comment --comment …    [ match name comment rev 0 ]
 */
import { attrTable, binary, text, u32be } from "../../attrs.ts";
import { NFTA_MATCH_INFO, NFTA_MATCH_NAME, NFTA_MATCH_REV } from "../../uapi/nf-tables.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";

const matchAttrs = attrTable("NFTA_MATCH", {
  name: text(NFTA_MATCH_NAME),
  revision: u32be(NFTA_MATCH_REV),
  info: binary(NFTA_MATCH_INFO),
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
  const XT_SCTP_DEST_PORTS = 2, CHUNK_FLAGS_AT = 268, FLAGS_AT = 284;
  const info = new Uint8Array(296), view = new DataView(info.buffer);
  view.setUint16(0, port, true);
  view.setUint16(2, port, true);
  for (let index = 0; index < 4; index++) info[CHUNK_FLAGS_AT + 3 * index] = 0xff;
  info[FLAGS_AT] = XT_SCTP_DEST_PORTS;
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
