/**
 * Loads bytes of the packet into a register (enum nft_payload_attributes).
 *
 *     ip saddr    [ payload load 4b @ network header + 12 => reg 1 ]
 */
import { attrTable, u32be } from "../../attrs.ts";
import {
  NFT_PAYLOAD_LL_HEADER,
  NFT_PAYLOAD_NETWORK_HEADER,
  NFT_PAYLOAD_TRANSPORT_HEADER,
  NFT_REG_1,
  NFTA_PAYLOAD_BASE,
  NFTA_PAYLOAD_DREG,
  NFTA_PAYLOAD_LEN,
  NFTA_PAYLOAD_OFFSET,
} from "../../uapi/nf-tables.ts";
import { expression, type FoundExpression } from "./expression.ts";

const payloadAttrs = attrTable("NFTA_PAYLOAD", {
  into: u32be(NFTA_PAYLOAD_DREG),
  base: u32be(NFTA_PAYLOAD_BASE),
  offset: u32be(NFTA_PAYLOAD_OFFSET),
  length: u32be(NFTA_PAYLOAD_LEN),
});

export const payload = expression("payload", payloadAttrs);

/** `ip saddr` or `ip6 saddr`, or its first bytes. */
export function sourceAddress(addressLength: number, length = addressLength) {
  return payload({
    into: NFT_REG_1,
    base: NFT_PAYLOAD_NETWORK_HEADER,
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
  return found.base === NFT_PAYLOAD_NETWORK_HEADER && found.offset === offset;
}

/** `ip daddr` or `ip6 daddr`, or its first bytes. */
export function destinationAddress(addressLength: number, length = addressLength) {
  return payload({
    into: NFT_REG_1,
    base: NFT_PAYLOAD_NETWORK_HEADER,
    offset: addressLength === 4 ? 16 : 24,
    length,
  });
}

/** `ether saddr` */
export function sourceMac(into: number) {
  return payload({ into, base: NFT_PAYLOAD_LL_HEADER, offset: 6, length: 6 });
}

/** `tcp dport`, `udp dport` and so on: the offset is the same. */
export function destinationPortInto(into: number) {
  return payload({ into, base: NFT_PAYLOAD_TRANSPORT_HEADER, offset: 2, length: 2 });
}

export const destinationPort = destinationPortInto(NFT_REG_1);

/** A port as it stands in a packet. */
export function portBytes(port: number): Uint8Array {
  return new Uint8Array([port >> 8, port & 0xff]);
}
