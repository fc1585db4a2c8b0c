/**
 * Loads a property of the packet's connection into a register, or sets it from one (enum nft_ct_attributes).
 *
 *     ct state established,related    [ ct load state => reg 1 ]
 *                                     [ bitwise reg 1 = ( reg 1 & 0x00000006 ) ^ 0x00000000 ]
 *                                     [ cmp neq reg 1 0x00000000 ]
 */
import { attrTable, u32be } from "../../attrs.ts";
import {
  NFT_CT_MARK,
  NFT_CT_STATE,
  NFT_CT_STATUS,
  NFT_REG_1,
  NFTA_CT_DREG,
  NFTA_CT_KEY,
  NFTA_CT_SREG,
} from "../../uapi/nf-tables.ts";
import { hostOrder, masked } from "./bitwise.ts";
import { differs } from "./cmp.ts";
import { type Expression, expression } from "./expression.ts";

const ct = expression(
  "ct",
  attrTable("NFTA_CT", { key: u32be(NFTA_CT_KEY), into: u32be(NFTA_CT_DREG), from: u32be(NFTA_CT_SREG) }),
);

/** Bits of enum ip_conntrack_info. */
const INVALID = 1, ESTABLISHED_OR_RELATED = 6;

export const establishedOrRelated: readonly Expression[] = stateIs(ESTABLISHED_OR_RELATED);
/** `ct state invalid`: conntrack cannot tell which connection the packet belongs to. */
export const invalid: readonly Expression[] = stateIs(INVALID);

function stateIs(bits: number): readonly Expression[] {
  return [ct({ key: NFT_CT_STATE, into: NFT_REG_1 }), masked(hostOrder(bits)), differs(new Uint8Array(4))];
}

/** `ct mark` */
export const connectionMark = ct({ key: NFT_CT_MARK, into: NFT_REG_1 });
/** `ct mark set …` */
export const setConnectionMark = ct({ key: NFT_CT_MARK, from: NFT_REG_1 });

/** IPS_DST_NAT of enum ip_conntrack_status. */
const DESTINATION_CHANGED = new Uint8Array([1 << 5, 0, 0, 0]);

/** `ct status dnat`: the destination was translated. */
export const destinationChanged: readonly Expression[] = [
  ct({ key: NFT_CT_STATUS, into: NFT_REG_1 }),
  masked(DESTINATION_CHANGED),
  differs(new Uint8Array(4)),
];
