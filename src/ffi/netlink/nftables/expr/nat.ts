/**
 * Translates the destination of the packet's connection (enum nft_nat_attributes). The address is in register 1, followed
 * by the port if that changes.
 *
 *     dnat ip to …    [ nat dnat ip addr_min reg 1 proto_min reg 9 ]
 */
import { attrTable, u32be } from "../../attrs.ts";
import {
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NFT_NAT_DNAT,
  NFT_REG_1,
  NFTA_NAT_FAMILY,
  NFTA_NAT_REG_ADDR_MIN,
  NFTA_NAT_REG_PROTO_MIN,
  NFTA_NAT_TYPE,
} from "../../uapi/nf-tables.ts";
import { type Expression, expression } from "./expression.ts";
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
    family: addressLength === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6,
    address: NFT_REG_1,
    port: withPort ? registerAt(addressLength / 4) : undefined,
  });
}
