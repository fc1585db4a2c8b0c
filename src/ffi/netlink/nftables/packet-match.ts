/**
 * What a rule loads of a packet and its connection, and the matches that both nft(8) and iptables-nft write of it
 * (linux/netfilter/nf_tables.h).
 */
import { attrTable, u32be } from "../attrs.ts";
import * as nft from "../uapi/nf-tables.ts";
import { type Expression, expression, type FoundExpression, registerAt } from "./expression.ts";
import { differs, equals, hostOrder, masked } from "./compare.ts";
import { networkOf, type Prefix } from "../../../net/address.ts";
import { portBytes } from "../../../net/port.ts";

/**
 * Loads bytes of the packet into a register (enum nft_payload_attributes).
 *
 *     ip saddr    [ payload load 4b @ network header + 12 => reg 1 ]
 */
export const payloadAttrs = attrTable("NFTA_PAYLOAD", {
  into: u32be(nft.NFTA_PAYLOAD_DREG),
  base: u32be(nft.NFTA_PAYLOAD_BASE),
  offset: u32be(nft.NFTA_PAYLOAD_OFFSET),
  length: u32be(nft.NFTA_PAYLOAD_LEN),
  from: u32be(nft.NFTA_PAYLOAD_SREG),
});

export const payload = expression("payload", payloadAttrs);

/** `ip saddr` or `ip6 saddr`, or its first bytes. */
export function sourceAddress(addressLength: number, length = addressLength) {
  return payload({
    into: nft.NFT_REG_1,
    base: nft.NFT_PAYLOAD_NETWORK_HEADER,
    offset: addressLength === 4 ? 12 : 8,
    length,
  });
}

/** Whether the expression loads the source address or its first bytes. */
export function loadsSource(expression: FoundExpression, addressLength: number): boolean {
  return loadsFromHeader(expression, addressLength === 4 ? 12 : 8);
}

/** Whether the expression loads the destination address or its first bytes. */
export function loadsDestination(expression: FoundExpression, addressLength: number): boolean {
  return loadsFromHeader(expression, addressLength === 4 ? 16 : 24);
}

function loadsFromHeader({ name, data }: FoundExpression, offset: number): boolean {
  if (name !== "payload") return false;
  const found = payloadAttrs.decode(data);
  return found.base === nft.NFT_PAYLOAD_NETWORK_HEADER && found.offset === offset;
}

/** `ip daddr` or `ip6 daddr`, or its first bytes. */
export function destinationAddress(addressLength: number, length = addressLength) {
  return payload({
    into: nft.NFT_REG_1,
    base: nft.NFT_PAYLOAD_NETWORK_HEADER,
    offset: addressLength === 4 ? 16 : 24,
    length,
  });
}

/** `ether saddr` */
export function sourceMac(into: number) {
  return payload({ into, base: nft.NFT_PAYLOAD_LL_HEADER, offset: 6, length: 6 });
}

/** `tcp dport`, `udp dport` and so on: the offset is the same. */
export function destinationPortInto(into: number) {
  return payload({ into, base: nft.NFT_PAYLOAD_TRANSPORT_HEADER, offset: 2, length: 2 });
}

export const destinationPort = destinationPortInto(nft.NFT_REG_1);

/**
 * Loads metadata of the packet into a register, or sets it from one (enum nft_meta_attributes).
 *
 *     meta nfproto    [ meta load nfproto => reg 1 ]
 *     iifname         [ meta load iifname => reg 1 ]
 *     oifname         [ meta load oifname => reg 1 ]
 *     iif             [ meta load iif => reg 1 ]
 *     oif             [ meta load oif => reg 1 ]
 *     sdif            [ meta load sdif => reg 1 ]
 *     sdifname        [ meta load sdifname => reg 1 ]
 *     meta mark       [ meta load mark => reg 1 ]
 *     meta l4proto    [ meta load l4proto => reg 1 ]
 */
export const metaAttrs = attrTable("NFTA_META", {
  key: u32be(nft.NFTA_META_KEY),
  into: u32be(nft.NFTA_META_DREG),
  from: u32be(nft.NFTA_META_SREG),
});

const meta = expression("meta", metaAttrs);

export const protocolFamily = meta({ key: nft.NFT_META_NFPROTO, into: nft.NFT_REG_1 });
export const inputLink = meta({ key: nft.NFT_META_IIFNAME, into: nft.NFT_REG_1 });
/** For a concatenated key: the registers are adjacent. */
export const inputAndOutputLink = [inputLink, meta({ key: nft.NFT_META_OIFNAME, into: nft.NFT_REG_2 })];
export const outputLink = meta({ key: nft.NFT_META_OIFNAME, into: nft.NFT_REG_1 });
export const inputIndex = meta({ key: nft.NFT_META_IIF, into: nft.NFT_REG_1 });
export const outputIndex = meta({ key: nft.NFT_META_OIF, into: nft.NFT_REG_1 });
/** For a concatenated key of two numbers: each fills a register of four bytes. */
export const inputAndOutputIndex = [
  meta({ key: nft.NFT_META_IIF, into: registerAt(0) }),
  meta({ key: nft.NFT_META_OIF, into: registerAt(1) }),
];
/** The link in a VRF that a packet came by; `iif` is the VRF then. */
export const memberIndex = meta({ key: nft.NFT_META_SDIF, into: nft.NFT_REG_1 });
export const memberLink = meta({ key: nft.NFT_META_SDIFNAME, into: nft.NFT_REG_1 });
export const packetMark = meta({ key: nft.NFT_META_MARK, into: nft.NFT_REG_1 });
/** `meta mark set …` */
export const setPacketMark = meta({ key: nft.NFT_META_MARK, from: nft.NFT_REG_1 });
/** `meta nftrace set …` */
export const setTracing = meta({ key: nft.NFT_META_NFTRACE, from: nft.NFT_REG_1 });

export function transportProtocolInto(into: number) {
  return meta({ key: nft.NFT_META_L4PROTO, into });
}

export const transportProtocol = transportProtocolInto(nft.NFT_REG_1);

/**
 * Loads a property of the packet's connection into a register, or sets it from one (enum nft_ct_attributes).
 *
 *     ct state established,related    [ ct load state => reg 1 ]
 *                                     [ bitwise reg 1 = ( reg 1 & 0x00000006 ) ^ 0x00000000 ]
 *                                     [ cmp neq reg 1 0x00000000 ]
 */
export const ctAttrs = attrTable("NFTA_CT", {
  key: u32be(nft.NFTA_CT_KEY),
  into: u32be(nft.NFTA_CT_DREG),
  from: u32be(nft.NFTA_CT_SREG),
});

const ct = expression("ct", ctAttrs);

/** Bits of enum ip_conntrack_info. */
const INVALID = 1, ESTABLISHED_OR_RELATED = 6;

export const establishedOrRelated: readonly Expression[] = stateIs(ESTABLISHED_OR_RELATED);
/** `ct state invalid`: conntrack cannot tell which connection the packet belongs to. */
export const invalid: readonly Expression[] = stateIs(INVALID);

function stateIs(bits: number): readonly Expression[] {
  return [ct({ key: nft.NFT_CT_STATE, into: nft.NFT_REG_1 }), masked(hostOrder(bits)), differs(new Uint8Array(4))];
}

/** `ct mark` */
export const connectionMark = ct({ key: nft.NFT_CT_MARK, into: nft.NFT_REG_1 });
/** `ct mark set …` */
export const setConnectionMark = ct({ key: nft.NFT_CT_MARK, from: nft.NFT_REG_1 });

/** IPS_DST_NAT of enum ip_conntrack_status. */
const DESTINATION_CHANGED = new Uint8Array([1 << 5, 0, 0, 0]);

/** `ct status dnat`: the destination was translated. */
export const destinationChanged: readonly Expression[] = [
  ct({ key: nft.NFT_CT_STATUS, into: nft.NFT_REG_1 }),
  masked(DESTINATION_CHANGED),
  differs(new Uint8Array(4)),
];

/**
 * Loads the result of a route lookup for the packet into a register (enum nft_fib_attributes).
 *
 *     fib daddr type    [ fib daddr type => reg 1 ]
 */
export const fibAttrs = attrTable("NFTA_FIB", {
  into: u32be(nft.NFTA_FIB_DREG),
  result: u32be(nft.NFTA_FIB_RESULT),
  flags: u32be(nft.NFTA_FIB_FLAGS),
});

const fib = expression("fib", fibAttrs);

/** linux/rtnetlink.h, enum rtn_type; in host byte order. */
const RTN_UNICAST = new Uint8Array([1, 0, 0, 0]), RTN_LOCAL = new Uint8Array([2, 0, 0, 0]);

const destinationType = fib({
  into: nft.NFT_REG_1,
  result: nft.NFT_FIB_RESULT_ADDRTYPE,
  flags: nft.NFTA_FIB_F_DADDR,
});

/** `fib daddr type local`: the packet is for this host. */
export const toThisHost: readonly Expression[] = [destinationType, equals(RTN_LOCAL)];

const ETH_P_8021Q = 0x8100, ETH_P_8021AD = 0x88a8, tagTypes = [ETH_P_8021Q, ETH_P_8021AD];
const inFrame = (offset: number) =>
  payload({ into: nft.NFT_REG_1, base: nft.NFT_PAYLOAD_LL_HEADER, offset, length: 2 });

/**
 * `ether type 8021q vlan id 0 vlan type 8021q`, and so on: a tag behind one of VLAN 0. The kernel takes both off before it
 * looks at addresses; in netdev, the first one alone has been taken off.
 */
export const taggedBehindVlan0: readonly Expression[][] = tagTypes.flatMap((outer) =>
  tagTypes.map((inner) => [
    inFrame(12),
    equals(portBytes(outer)),
    inFrame(14),
    masked(new Uint8Array([0x0f, 0xff])),
    equals(new Uint8Array(2)),
    inFrame(16),
    equals(portBytes(inner)),
  ])
);

/** `fib daddr oifname LINK fib daddr type unicast`: the host would forward the packet by the link. `link` as `linkNameOf`. */
export function wouldLeaveBy(link: Uint8Array): Expression[] {
  const way = fib({ into: nft.NFT_REG_1, result: nft.NFT_FIB_RESULT_OIFNAME, flags: nft.NFTA_FIB_F_DADDR });
  return [way, equals(link), destinationType, equals(RTN_UNICAST)];
}

/**
 * Matches of a packet's addresses.
 *
 *     ip daddr 10.88.0.0/16         [ payload load 2b @ network header + 16 => reg 1 ]
 *                                   [ cmp eq reg 1 0x0000580a ]
 *     ip daddr != 224.0.0.0/4       [ payload load 4b @ network header + 16 => reg 1 ]
 *                                   [ bitwise reg 1 = ( reg 1 & 0x000000f0 ) ^ 0x00000000 ]
 *                                   [ cmp neq reg 1 0x000000e0 ]
 */
export const multicast4: Prefix = { bytes: new Uint8Array([224, 0, 0, 0]), bits: 4 };
export const multicast6: Prefix = {
  bytes: new Uint8Array([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
  bits: 8,
};

/** `meta nfproto ipv4`, or `ipv6`, by the length of an address: in an inet table, before any match of an address. */
export function ofFamily(addressLength: number): Expression[] {
  return [protocolFamily, equals(new Uint8Array([addressLength === 4 ? nft.NFPROTO_IPV4 : nft.NFPROTO_IPV6]))];
}

/** A prefix of 0 bits matches every packet. */
export function from(prefix: Prefix): Expression[] {
  return prefix.bits === 0 ? [] : compare(sourceAddress, prefix, equals);
}

/** `prefix` must have at least one bit. */
export function notFrom(prefix: Prefix): Expression[] {
  return compare(sourceAddress, prefix, differs);
}

/** A prefix of 0 bits matches every packet. */
export function to(prefix: Prefix): Expression[] {
  return prefix.bits === 0 ? [] : compare(destinationAddress, prefix, equals);
}

/** `prefix` must have at least one bit. */
export function notTo(prefix: Prefix): Expression[] {
  return compare(destinationAddress, prefix, differs);
}

function compare(
  load: (addressLength: number, length?: number) => Expression,
  prefix: Prefix,
  comparison: (value: Uint8Array) => Expression,
): Expression[] {
  const size = prefix.bytes.length, network = networkOf(prefix);
  if (prefix.bits % 8 === 0) {
    const length = prefix.bits / 8;
    return [load(size, length), comparison(network.subarray(0, length))];
  }
  const mask = networkOf({ bytes: new Uint8Array(size).fill(0xff), bits: prefix.bits });
  return [load(size), masked(mask), comparison(network)];
}
