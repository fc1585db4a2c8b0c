/**
 * An xtables target in a rule, as iptables-nft writes it (linux/netfilter/nf_tables_compat.h).
 *
 *     -j MASQUERADE    [ target name MASQUERADE rev 0 ]
 */
import { attrTable, binary, text, u32be } from "../../attrs.ts";
import { NFTA_TARGET_INFO, NFTA_TARGET_NAME, NFTA_TARGET_REV } from "../../uapi/nf-tables.ts";
import { type Expression, expression } from "./expression.ts";

const target = expression(
  "target",
  attrTable("NFTA_TARGET", {
    name: text(NFTA_TARGET_NAME),
    revision: u32be(NFTA_TARGET_REV),
    info: binary(NFTA_TARGET_INFO),
  }),
);

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
