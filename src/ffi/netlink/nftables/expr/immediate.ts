/**
 * Loads a constant or a verdict into a register (enum nft_immediate_attributes).
 *
 *     jump CNI-…    [ immediate reg 0 jump -> CNI-… ]
 */
import { attrTable, nest, u32be } from "../../attrs.ts";
import {
  NF_ACCEPT,
  NF_DROP,
  NFT_JUMP,
  NFT_REG_VERDICT,
  NFT_RETURN,
  NFTA_IMMEDIATE_DATA,
  NFTA_IMMEDIATE_DREG,
} from "../../uapi/nf-tables.ts";
import { dataAttrs } from "../data.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";

const immediateAttrs = attrTable("NFTA_IMMEDIATE", {
  into: u32be(NFTA_IMMEDIATE_DREG),
  data: nest(NFTA_IMMEDIATE_DATA, dataAttrs),
});

const immediate = expression("immediate", immediateAttrs);

function verdict(code: number, chain?: string): Expression {
  return immediate({ into: NFT_REG_VERDICT, data: { verdict: { code, chain } } });
}

/** Loads a constant into a register. */
export function loaded(value: Uint8Array, into: number): Expression {
  return immediate({ into, data: { value } });
}

export const accept = verdict(NF_ACCEPT);
export const drop = verdict(NF_DROP);
export const backToCaller = verdict(NFT_RETURN);

export function jump(chain: string): Expression {
  return verdict(NFT_JUMP, chain);
}

/** The target chain of the rule's jump or goto, or undefined. */
export function jumpTarget(rule: readonly FoundExpression[]): string | undefined {
  const last = rule[rule.length - 1];
  return last?.name === "immediate" ? immediateAttrs.decode(last.data).data?.verdict?.chain : undefined;
}

/** Whether the expression loads this value. */
export function puts({ name, data }: FoundExpression, value: Uint8Array): boolean {
  if (name !== "immediate") return false;
  const put = immediateAttrs.decode(data).data?.value;
  return put?.length === value.length && value.every((byte, index) => byte === put[index]);
}
