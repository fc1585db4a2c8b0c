/**
 * Loads metadata of the packet into a register, or sets it from one (enum nft_meta_attributes).
 *
 *     meta nfproto    [ meta load nfproto => reg 1 ]
 *     iifname         [ meta load iifname => reg 1 ]
 *     oifname         [ meta load oifname => reg 1 ]
 *     meta mark       [ meta load mark => reg 1 ]
 *     meta l4proto    [ meta load l4proto => reg 1 ]
 */
import { attrTable, u32be } from "../../attrs.ts";
import {
  NFT_META_IIFNAME,
  NFT_META_L4PROTO,
  NFT_META_MARK,
  NFT_META_NFPROTO,
  NFT_META_OIFNAME,
  NFT_REG_1,
  NFT_REG_2,
  NFTA_META_DREG,
  NFTA_META_KEY,
  NFTA_META_SREG,
} from "../../uapi/nf-tables.ts";
import { expression } from "./expression.ts";

const meta = expression(
  "meta",
  attrTable("NFTA_META", {
    key: u32be(NFTA_META_KEY),
    into: u32be(NFTA_META_DREG),
    from: u32be(NFTA_META_SREG),
  }),
);

export const protocolFamily = meta({ key: NFT_META_NFPROTO, into: NFT_REG_1 });
export const inputLink = meta({ key: NFT_META_IIFNAME, into: NFT_REG_1 });
/** For a concatenated key: the registers are adjacent. */
export const inputAndOutputLink = [inputLink, meta({ key: NFT_META_OIFNAME, into: NFT_REG_2 })];
export const outputLink = meta({ key: NFT_META_OIFNAME, into: NFT_REG_1 });
export const packetMark = meta({ key: NFT_META_MARK, into: NFT_REG_1 });
/** `meta mark set …` */
export const setPacketMark = meta({ key: NFT_META_MARK, from: NFT_REG_1 });

export function transportProtocolInto(into: number) {
  return meta({ key: NFT_META_L4PROTO, into });
}

export const transportProtocol = transportProtocolInto(NFT_REG_1);
