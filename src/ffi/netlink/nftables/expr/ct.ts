/**
 * Loads a property of the packet's connection into a register (enum nft_ct_attributes).
 *
 *     ct state established,related    [ ct load state => reg 1 ]
 *                                     [ bitwise reg 1 = ( reg 1 & 0x00000006 ) ^ 0x00000000 ]
 *                                     [ cmp neq reg 1 0x00000000 ]
 */
import { attrTable, u32be } from "../../attrs.ts";
import { NFT_CT_STATE, NFT_CT_STATUS, NFT_REG_1, NFTA_CT_DREG, NFTA_CT_KEY } from "../../uapi/nf-tables.ts";
import { masked } from "./bitwise.ts";
import { differs } from "./cmp.ts";
import { type Expression, expression } from "./expression.ts";

const ct = expression("ct", attrTable("NFTA_CT", { key: u32be(NFTA_CT_KEY), into: u32be(NFTA_CT_DREG) }));

/** Bits of enum ip_conntrack_info, in host byte order. */
const ESTABLISHED_OR_RELATED = new Uint8Array([6, 0, 0, 0]);

export const establishedOrRelated: readonly Expression[] = [
  ct({ key: NFT_CT_STATE, into: NFT_REG_1 }),
  masked(ESTABLISHED_OR_RELATED),
  differs(new Uint8Array(4)),
];

/** IPS_DST_NAT of enum ip_conntrack_status. */
const DESTINATION_CHANGED = new Uint8Array([1 << 5, 0, 0, 0]);

/** `ct status dnat`: the destination was translated. */
export const destinationChanged: readonly Expression[] = [
  ct({ key: NFT_CT_STATUS, into: NFT_REG_1 }),
  masked(DESTINATION_CHANGED),
  differs(new Uint8Array(4)),
];
