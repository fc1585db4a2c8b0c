/**
 * Masks a register (enum nft_bitwise_attributes).
 *
 *     & 240.0.0.0     [ bitwise reg 1 = ( reg 1 & 0x000000f0 ) ^ 0x00000000 ]
 *     | 0x00002000    [ bitwise reg 1 = ( reg 1 & 0xffffdfff ) ^ 0x00002000 ]
 */
import { attrTable, nest, u32be } from "../../attrs.ts";
import {
  NFT_REG_1,
  NFTA_BITWISE_DREG,
  NFTA_BITWISE_LEN,
  NFTA_BITWISE_MASK,
  NFTA_BITWISE_SREG,
  NFTA_BITWISE_XOR,
} from "../../uapi/nf-tables.ts";
import { dataAttrs } from "../data.ts";
import { type Expression, expression } from "./expression.ts";

const bitwise = expression(
  "bitwise",
  attrTable("NFTA_BITWISE", {
    from: u32be(NFTA_BITWISE_SREG),
    into: u32be(NFTA_BITWISE_DREG),
    length: u32be(NFTA_BITWISE_LEN),
    mask: nest(NFTA_BITWISE_MASK, dataAttrs),
    xor: nest(NFTA_BITWISE_XOR, dataAttrs),
  }),
);

export function masked(mask: Uint8Array): Expression {
  return bitwise({
    from: NFT_REG_1,
    into: NFT_REG_1,
    length: mask.length,
    mask: { value: mask },
    xor: { value: new Uint8Array(mask.length) },
  });
}

/** Sets the bits of the value, which is in host byte order. */
export function withBits(value: number): Expression {
  return bitwise({
    from: NFT_REG_1,
    into: NFT_REG_1,
    length: 4,
    mask: { value: hostOrder(~value) },
    xor: { value: hostOrder(value) },
  });
}

/** A number as the kernel compares it in a register: in host byte order. */
export function hostOrder(value: number): Uint8Array {
  return new Uint8Array(new Uint32Array([value]).buffer);
}
