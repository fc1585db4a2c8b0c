/**
 * Compares a register with a value; the rule ends unless it holds (enum nft_cmp_attributes).
 *
 *     == 10.88.0.5    [ cmp eq reg 1 0x0500580a ]
 */
import { attrTable, nest, u32be } from "../../attrs.ts";
import {
  NFT_CMP_EQ,
  NFT_CMP_GTE,
  NFT_CMP_LTE,
  NFT_CMP_NEQ,
  NFT_REG_1,
  NFTA_CMP_DATA,
  NFTA_CMP_OP,
  NFTA_CMP_SREG,
} from "../../uapi/nf-tables.ts";
import { dataAttrs } from "../data.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";

const cmpAttrs = attrTable("NFTA_CMP", {
  register: u32be(NFTA_CMP_SREG),
  operation: u32be(NFTA_CMP_OP),
  data: nest(NFTA_CMP_DATA, dataAttrs),
});

const cmp = expression("cmp", cmpAttrs);

export function equals(value: Uint8Array): Expression {
  return cmp({ register: NFT_REG_1, operation: NFT_CMP_EQ, data: { value } });
}

export function differs(value: Uint8Array): Expression {
  return cmp({ register: NFT_REG_1, operation: NFT_CMP_NEQ, data: { value } });
}

/** Both ends belong to the range. */
export function between(first: Uint8Array, last: Uint8Array): Expression[] {
  return [
    cmp({ register: NFT_REG_1, operation: NFT_CMP_GTE, data: { value: first } }),
    cmp({ register: NFT_REG_1, operation: NFT_CMP_LTE, data: { value: last } }),
  ];
}

/** The value of the rule's first comparison, or undefined. */
export function comparedValue(rule: readonly FoundExpression[]): Uint8Array | undefined {
  const first = rule.find(({ name }) => name === "cmp");
  return first && cmpAttrs.decode(first.data).data?.value;
}

/** Whether the expression compares with the value. */
export function compares({ name, data }: FoundExpression, value: Uint8Array): boolean {
  if (name !== "cmp") return false;
  const compared = cmpAttrs.decode(data).data?.value;
  return compared?.length === value.length && value.every((byte, index) => byte === compared[index]);
}
