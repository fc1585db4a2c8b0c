/**
 * Looks a register up in a map of counters and counts; the rule ends if it has none (enum nft_objref_attributes).
 *
 *     counter name … map @guarded    [ objref sreg 1 set guarded ]
 */
import { attrTable, custom, u32be } from "../../attrs.ts";
import { NFT_REG_1, NFTA_OBJREF_SET_NAME, NFTA_OBJREF_SET_SREG } from "../../uapi/nf-tables.ts";
import { plainText } from "../message.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";

const objrefAttrs = attrTable("NFTA_OBJREF", {
  register: u32be(NFTA_OBJREF_SET_SREG),
  map: custom(NFTA_OBJREF_SET_NAME, plainText),
});

const objref = expression("objref", objrefAttrs);

export function countIn(map: string): Expression {
  return objref({ register: NFT_REG_1, map });
}

/** The map of counters that the rule looks up, or undefined. */
export function countsIn(rule: readonly FoundExpression[]): string | undefined {
  const found = rule.find(({ name }) => name === "objref");
  return found && objrefAttrs.decode(found.data).map;
}
