/** What a rule does with a packet that it matches: a verdict, another address, a count (linux/netfilter/nf_tables.h). */
import { attrTable, nest, u32be, u64be } from "../attrs.ts";
import * as nft from "../uapi/nf-tables.ts";
import { dataAttrs, type Expression, expression, type FoundExpression, registerAt } from "./expression.ts";

/**
 * Loads a constant or a verdict into a register (enum nft_immediate_attributes).
 *
 *     jump CNI-…    [ immediate reg 0 jump -> CNI-… ]
 */
export const immediateAttrs = attrTable("NFTA_IMMEDIATE", {
  into: u32be(nft.NFTA_IMMEDIATE_DREG),
  data: nest(nft.NFTA_IMMEDIATE_DATA, dataAttrs),
});

const immediate = expression("immediate", immediateAttrs);

function verdict(code: number, chain?: string): Expression {
  return immediate({ into: nft.NFT_REG_VERDICT, data: { verdict: { code, chain } } });
}

/** Loads a constant into a register. */
export function loaded(value: Uint8Array, into: number): Expression {
  return immediate({ into, data: { value } });
}

export const accept = verdict(nft.NF_ACCEPT);
export const drop = verdict(nft.NF_DROP);
export const backToCaller = verdict(nft.NFT_RETURN);

export function jump(chain: string): Expression {
  return verdict(nft.NFT_JUMP, chain);
}

/** The target chain of the rule's jump or goto, or undefined. */
export function jumpTarget(rule: readonly FoundExpression[]): string | undefined {
  const last = rule[rule.length - 1];
  return last?.name === "immediate" ? immediateAttrs.decode(last.data).data?.verdict?.chain : undefined;
}

/** Whether the expression loads this value. */
export function puts({ name, data }: FoundExpression, value: Uint8Array): boolean {
  if (name !== "immediate") return false;
  const put = immediateAttrs.decode(data).data?.value;
  return put?.length === value.length && value.every((byte, index) => byte === put[index]);
}

/**
 * Translates the destination, or the source, of the packet's connection (enum nft_nat_attributes). The address is in
 * register 1, followed by the port if that changes; a constant port is in register 2.
 *
 *     dnat ip to …                [ nat dnat ip addr_min reg 1 proto_min reg 9 ]
 *     dnat ip to 10.88.0.2:80     [ immediate reg 1 0x0200580a ]
 *                                 [ immediate reg 2 0x00005000 ]
 *                                 [ nat dnat ip addr_min reg 1 proto_min reg 2 ]
 *     snat ip to 100.1.100.1      [ immediate reg 1 0x01640164 ]
 *                                 [ nat snat ip addr_min reg 1 ]
 */
export const natAttrs = attrTable("NFTA_NAT", {
  type: u32be(nft.NFTA_NAT_TYPE),
  family: u32be(nft.NFTA_NAT_FAMILY),
  address: u32be(nft.NFTA_NAT_REG_ADDR_MIN),
  lastAddress: u32be(nft.NFTA_NAT_REG_ADDR_MAX),
  port: u32be(nft.NFTA_NAT_REG_PROTO_MIN),
  lastPort: u32be(nft.NFTA_NAT_REG_PROTO_MAX),
});

const nat = expression("nat", natAttrs);

export function destinationNat(addressLength: number, { withPort }: { withPort: boolean }): Expression {
  return nat({
    type: nft.NFT_NAT_DNAT,
    family: protocolOf(addressLength),
    address: nft.NFT_REG_1,
    port: withPort ? registerAt(addressLength / 4) : undefined,
  });
}

/** `dnat ip to ADDRESS:PORT`; the port is in network byte order. */
export function destinationNatTo(address: Uint8Array, port: Uint8Array): Expression[] {
  return [
    loaded(address, nft.NFT_REG_1),
    loaded(port, nft.NFT_REG_2),
    nat({ type: nft.NFT_NAT_DNAT, family: protocolOf(address.length), address: nft.NFT_REG_1, port: nft.NFT_REG_2 }),
  ];
}

/** `snat ip to ADDRESS` */
export function sourceNatTo(address: Uint8Array): Expression[] {
  return [
    loaded(address, nft.NFT_REG_1),
    nat({ type: nft.NFT_NAT_SNAT, family: protocolOf(address.length), address: nft.NFT_REG_1 }),
  ];
}

function protocolOf(addressLength: number): number {
  return addressLength === 4 ? nft.NFPROTO_IPV4 : nft.NFPROTO_IPV6;
}

/**
 * Translates the source address into an address of the outgoing link (enum nft_masq_attributes, none of them used).
 *
 *     masquerade    [ masq ]
 */
export const masquerade = expression("masq", attrTable("NFTA_MASQ", {}))({});

/**
 * Counts packets and bytes (enum nft_counter_attributes).
 *
 *     counter    [ counter pkts 0 bytes 0 ]
 */

/** Also the attributes of a named counter. */
export const counterAttrs = attrTable("NFTA_COUNTER", {
  bytes: u64be(nft.NFTA_COUNTER_BYTES),
  packets: u64be(nft.NFTA_COUNTER_PACKETS),
});

export const counter = expression("counter", counterAttrs)({ bytes: 0n, packets: 0n });
