/**
 * A target of xtables inside a rule, as iptables-nft writes it (linux/netfilter/nf_tables_compat.h).
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
 * For version 4 struct nf_nat_ipv4_multi_range_compat with one range and no flags, for version 6 struct nf_nat_range:
 * nothing but zeros; both with the padding of XT_ALIGN.
 */
export function masqueradeTarget(addressLength: number): Expression {
  const info = new Uint8Array(addressLength === 4 ? 24 : 40);
  if (addressLength === 4) info[0] = 1;
  return target({ name: "MASQUERADE", revision: 0, info });
}
