/**
 * Looks a register up in a set; the rule ends unless the value is, or is not, in it. A map loads its value into a register
 * (enum nft_lookup_attributes).
 *
 *     … @allowed       [ lookup reg 1 set allowed ]
 *     … != @allowed    [ lookup reg 1 set allowed 0x1 ]
 *     … map @ports     [ lookup reg 1 set ports dreg 1 ]
 *     … { tcp, udp }   [ lookup reg 1 set __set%d ]    a set without a name, which belongs to the rule
 */
import { attrTable, text, u32be } from "../../attrs.ts";
import {
  NFT_LOOKUP_F_INV,
  NFT_REG_1,
  NFT_REG_2,
  NFTA_LOOKUP_DREG,
  NFTA_LOOKUP_FLAGS,
  NFTA_LOOKUP_SET,
  NFTA_LOOKUP_SET_ID,
  NFTA_LOOKUP_SREG,
} from "../../uapi/nf-tables.ts";
import { type Expression, expression, type FoundExpression } from "./expression.ts";

const lookupAttrs = attrTable("NFTA_LOOKUP", {
  register: u32be(NFTA_LOOKUP_SREG),
  into: u32be(NFTA_LOOKUP_DREG),
  set: text(NFTA_LOOKUP_SET),
  setId: u32be(NFTA_LOOKUP_SET_ID),
  flags: u32be(NFTA_LOOKUP_FLAGS),
});

const lookup = expression("lookup", lookupAttrs);

export function isIn(set: string): Expression {
  return lookup({ register: NFT_REG_1, set });
}

export function isNotIn(set: string): Expression {
  return lookup({ register: NFT_REG_1, set, flags: NFT_LOOKUP_F_INV });
}

export function valueIn(map: string): Expression {
  return lookup({ register: NFT_REG_1, into: NFT_REG_1, set: map });
}

/** `set` is what `createRuleSet` answered; without it, any set of a rule, to compare with a rule of the kernel's. */
export function isInRuleSet(set?: { name: string; id: number }): Expression {
  return lookup({ register: NFT_REG_1, set: set?.name, setId: set?.id });
}

/** Ends the rule unless the map has the key. The value is not looked at: kernels before 6.10 refuse to leave it out. */
export function isKeyOf(map: string): Expression {
  return lookup({ register: NFT_REG_1, into: NFT_REG_2, set: map });
}

/** The first set or map that the rule looks up, or undefined. */
export function looksInto(rule: readonly FoundExpression[]): string | undefined {
  const found = rule.find(({ name }) => name === "lookup");
  return found && lookupAttrs.decode(found.data).set;
}
