/**
 * Goes on only if a register's value is, or is not, in a set (enum nft_lookup_attributes).
 *
 *     … @allowed       [ lookup reg 1 set allowed ]
 *     … != @allowed    [ lookup reg 1 set allowed 0x1 ]
 */
import { attrTable, text, u32be } from "../../attrs.ts";
import {
  NFT_LOOKUP_F_INV,
  NFT_REG_1,
  NFTA_LOOKUP_FLAGS,
  NFTA_LOOKUP_SET,
  NFTA_LOOKUP_SREG,
} from "../../uapi/nf-tables.ts";
import { type Expression, expression } from "./expression.ts";

const lookup = expression(
  "lookup",
  attrTable("NFTA_LOOKUP", {
    register: u32be(NFTA_LOOKUP_SREG),
    set: text(NFTA_LOOKUP_SET),
    flags: u32be(NFTA_LOOKUP_FLAGS),
  }),
);

export function isIn(set: string): Expression {
  return lookup({ register: NFT_REG_1, set });
}

export function isNotIn(set: string): Expression {
  return lookup({ register: NFT_REG_1, set, flags: NFT_LOOKUP_F_INV });
}
