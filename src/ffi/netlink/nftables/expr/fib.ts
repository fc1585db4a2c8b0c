/**
 * Loads the result of a route lookup for the packet into a register (enum nft_fib_attributes).
 *
 *     fib daddr type    [ fib daddr type => reg 1 ]
 */
import { attrTable, u32be } from "../../attrs.ts";
import {
  NFT_FIB_RESULT_ADDRTYPE,
  NFT_REG_1,
  NFTA_FIB_DREG,
  NFTA_FIB_F_DADDR,
  NFTA_FIB_FLAGS,
  NFTA_FIB_RESULT,
} from "../../uapi/nf-tables.ts";
import { equals } from "./cmp.ts";
import { type Expression, expression } from "./expression.ts";

const fib = expression(
  "fib",
  attrTable("NFTA_FIB", {
    into: u32be(NFTA_FIB_DREG),
    result: u32be(NFTA_FIB_RESULT),
    flags: u32be(NFTA_FIB_FLAGS),
  }),
);

/** linux/rtnetlink.h, enum rtn_type; in host byte order. */
const RTN_LOCAL = new Uint8Array([2, 0, 0, 0]);

/** `fib daddr type local`: the packet is for this host. */
export const toThisHost: readonly Expression[] = [
  fib({ into: NFT_REG_1, result: NFT_FIB_RESULT_ADDRTYPE, flags: NFTA_FIB_F_DADDR }),
  equals(RTN_LOCAL),
];
