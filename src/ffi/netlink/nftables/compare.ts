/**
 * What a rule asks of a register: is it a value, is it in a set? The rule ends unless the answer is yes
 * (linux/netfilter/nf_tables.h).
 */
import { attrTable, custom, nest, text, u32be } from "../attrs.ts";
import * as nft from "../uapi/nf-tables.ts";
import { dataAttrs, type Expression, expression, type FoundExpression } from "./expression.ts";
import { plainText } from "./message.ts";

/**
 * Compares a register with a value (enum nft_cmp_attributes).
 *
 *     == 10.88.0.5    [ cmp eq reg 1 0x0500580a ]
 */
export const cmpAttrs = attrTable("NFTA_CMP", {
  register: u32be(nft.NFTA_CMP_SREG),
  operation: u32be(nft.NFTA_CMP_OP),
  data: nest(nft.NFTA_CMP_DATA, dataAttrs),
});

const cmp = expression("cmp", cmpAttrs);

export function equals(value: Uint8Array): Expression {
  return cmp({ register: nft.NFT_REG_1, operation: nft.NFT_CMP_EQ, data: { value } });
}

export function differs(value: Uint8Array): Expression {
  return cmp({ register: nft.NFT_REG_1, operation: nft.NFT_CMP_NEQ, data: { value } });
}

/** Both ends belong to the range. */
export function between(first: Uint8Array, last: Uint8Array): Expression[] {
  return [
    cmp({ register: nft.NFT_REG_1, operation: nft.NFT_CMP_GTE, data: { value: first } }),
    cmp({ register: nft.NFT_REG_1, operation: nft.NFT_CMP_LTE, data: { value: last } }),
  ];
}

/**
 * Compares a register with a range (enum nft_range_attributes).
 *
 *     != 127.0.0.2-127.255.255.255    [ range neq reg 1 0x0200007f 0xffffff7f ]
 */
export const rangeAttrs = attrTable("NFTA_RANGE", {
  register: u32be(nft.NFTA_RANGE_SREG),
  operation: u32be(nft.NFTA_RANGE_OP),
  first: nest(nft.NFTA_RANGE_FROM_DATA, dataAttrs),
  last: nest(nft.NFTA_RANGE_TO_DATA, dataAttrs),
});

const range = expression("range", rangeAttrs);

/** Both ends belong to the range. */
export function outside(first: Uint8Array, last: Uint8Array): Expression {
  const operation = nft.NFT_RANGE_NEQ;
  return range({ register: nft.NFT_REG_1, operation, first: { value: first }, last: { value: last } });
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

/**
 * Masks a register (enum nft_bitwise_attributes).
 *
 *     & 240.0.0.0     [ bitwise reg 1 = ( reg 1 & 0x000000f0 ) ^ 0x00000000 ]
 *     | 0x00002000    [ bitwise reg 1 = ( reg 1 & 0xffffdfff ) ^ 0x00002000 ]
 */
export const bitwiseAttrs = attrTable("NFTA_BITWISE", {
  from: u32be(nft.NFTA_BITWISE_SREG),
  into: u32be(nft.NFTA_BITWISE_DREG),
  length: u32be(nft.NFTA_BITWISE_LEN),
  mask: nest(nft.NFTA_BITWISE_MASK, dataAttrs),
  xor: nest(nft.NFTA_BITWISE_XOR, dataAttrs),
  operation: u32be(nft.NFTA_BITWISE_OP),
});

const bitwise = expression("bitwise", bitwiseAttrs);

export function masked(mask: Uint8Array): Expression {
  return bitwise({
    from: nft.NFT_REG_1,
    into: nft.NFT_REG_1,
    length: mask.length,
    mask: { value: mask },
    xor: { value: new Uint8Array(mask.length) },
  });
}

/** Sets the bits of the value, which is in host byte order. */
export function withBits(value: number): Expression {
  return bitwise({
    from: nft.NFT_REG_1,
    into: nft.NFT_REG_1,
    length: 4,
    mask: { value: hostOrder(~value) },
    xor: { value: hostOrder(value) },
  });
}

/** A number as the kernel compares it in a register: in host byte order. */
export function hostOrder(value: number): Uint8Array {
  return new Uint8Array(new Uint32Array([value]).buffer);
}

/**
 * Looks a register up in a set: the value is, or is not, in it. A map loads its value into a register (enum
 * nft_lookup_attributes).
 *
 *     … @allowed       [ lookup reg 1 set allowed ]
 *     … != @allowed    [ lookup reg 1 set allowed 0x1 ]
 *     … map @ports     [ lookup reg 1 set ports dreg 1 ]
 *     … { tcp, udp }   [ lookup reg 1 set __set%d ]    a set without a name, which belongs to the rule
 */
export const lookupAttrs = attrTable("NFTA_LOOKUP", {
  register: u32be(nft.NFTA_LOOKUP_SREG),
  into: u32be(nft.NFTA_LOOKUP_DREG),
  set: text(nft.NFTA_LOOKUP_SET),
  setId: u32be(nft.NFTA_LOOKUP_SET_ID),
  flags: u32be(nft.NFTA_LOOKUP_FLAGS),
});

const lookup = expression("lookup", lookupAttrs);

export function isIn(set: string): Expression {
  return lookup({ register: nft.NFT_REG_1, set });
}

export function isNotIn(set: string): Expression {
  return lookup({ register: nft.NFT_REG_1, set, flags: nft.NFT_LOOKUP_F_INV });
}

export function valueIn(map: string): Expression {
  return lookup({ register: nft.NFT_REG_1, into: nft.NFT_REG_1, set: map });
}

/** `set` is what `createRuleSet` answered; without it, any set of a rule, to compare with a rule of the kernel's. */
export function isInRuleSet(set?: { name: string; id: number }): Expression {
  return lookup({ register: nft.NFT_REG_1, set: set?.name, setId: set?.id });
}

/** Ends the rule unless the map has the key. The value is not looked at: kernels before 6.10 refuse to leave it out. */
export function isKeyOf(map: string): Expression {
  return lookup({ register: nft.NFT_REG_1, into: nft.NFT_REG_2, set: map });
}

/** The first set or map that the rule looks up, or undefined. */
export function looksInto(rule: readonly FoundExpression[]): string | undefined {
  const found = rule.find(({ name }) => name === "lookup");
  return found && lookupAttrs.decode(found.data).set;
}

/**
 * Looks a register up in a map of counters and counts; the rule ends if it has none (enum nft_objref_attributes).
 *
 *     counter name … map @guarded    [ objref sreg 1 set guarded ]
 */
export const objrefAttrs = attrTable("NFTA_OBJREF", {
  type: u32be(nft.NFTA_OBJREF_IMM_TYPE),
  register: u32be(nft.NFTA_OBJREF_SET_SREG),
  map: custom(nft.NFTA_OBJREF_SET_NAME, plainText),
});

const objref = expression("objref", objrefAttrs);

export function countIn(map: string): Expression {
  return objref({ register: nft.NFT_REG_1, map });
}

/** The map of counters that the rule looks up, or undefined. */
export function countsIn(rule: readonly FoundExpression[]): string | undefined {
  const found = rule.find(({ name }) => name === "objref");
  return found && objrefAttrs.decode(found.data).map;
}
