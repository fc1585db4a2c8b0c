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
import { attrTable, u32be } from "../../attrs.ts";
import {
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NFT_NAT_DNAT,
  NFT_NAT_SNAT,
  NFT_REG_1,
  NFT_REG_2,
  NFTA_NAT_FAMILY,
  NFTA_NAT_REG_ADDR_MIN,
  NFTA_NAT_REG_PROTO_MIN,
  NFTA_NAT_TYPE,
} from "../../uapi/nf-tables.ts";
import { type Expression, expression } from "./expression.ts";
import { loaded } from "./immediate.ts";
import { registerAt } from "./register.ts";

const nat = expression(
  "nat",
  attrTable("NFTA_NAT", {
    type: u32be(NFTA_NAT_TYPE),
    family: u32be(NFTA_NAT_FAMILY),
    address: u32be(NFTA_NAT_REG_ADDR_MIN),
    port: u32be(NFTA_NAT_REG_PROTO_MIN),
  }),
);

export function destinationNat(addressLength: number, { withPort }: { withPort: boolean }): Expression {
  return nat({
    type: NFT_NAT_DNAT,
    family: protocolOf(addressLength),
    address: NFT_REG_1,
    port: withPort ? registerAt(addressLength / 4) : undefined,
  });
}

/** `dnat ip to ADDRESS:PORT`; the port is in network byte order. */
export function destinationNatTo(address: Uint8Array, port: Uint8Array): Expression[] {
  return [
    loaded(address, NFT_REG_1),
    loaded(port, NFT_REG_2),
    nat({ type: NFT_NAT_DNAT, family: protocolOf(address.length), address: NFT_REG_1, port: NFT_REG_2 }),
  ];
}

/** `snat ip to ADDRESS` */
export function sourceNatTo(address: Uint8Array): Expression[] {
  return [
    loaded(address, NFT_REG_1),
    nat({ type: NFT_NAT_SNAT, family: protocolOf(address.length), address: NFT_REG_1 }),
  ];
}

function protocolOf(addressLength: number): number {
  return addressLength === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}
