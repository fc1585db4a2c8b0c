/** A value or a verdict inside an expression or a set element (linux/netfilter/nf_tables.h, enum nft_data_attributes). */
import { attrTable, binary, nest, text, u32be } from "../attrs.ts";
import { NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_VERDICT_CHAIN, NFTA_VERDICT_CODE } from "../uapi/nf-tables.ts";

const verdictAttrs = attrTable("NFTA_VERDICT", {
  code: u32be(NFTA_VERDICT_CODE),
  chain: text(NFTA_VERDICT_CHAIN),
});

export const dataAttrs = attrTable("NFTA_DATA", {
  value: binary(NFTA_DATA_VALUE),
  verdict: nest(NFTA_DATA_VERDICT, verdictAttrs),
});
