/**
 * Matches of a packet's addresses, in the expressions that both nft(8) and iptables-nft write.
 *
 *     ip daddr 10.88.0.0/16         [ payload load 2b @ network header + 16 => reg 1 ]
 *                                   [ cmp eq reg 1 0x0000580a ]
 *     ip daddr != 224.0.0.0/4       [ payload load 4b @ network header + 16 => reg 1 ]
 *                                   [ bitwise reg 1 = ( reg 1 & 0x000000f0 ) ^ 0x00000000 ]
 *                                   [ cmp neq reg 1 0x000000e0 ]
 */
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../uapi/nf-tables.ts";
import { networkOf, type Prefix } from "../../../net/address.ts";
import { masked } from "./expr/bitwise.ts";
import { differs, equals } from "./expr/cmp.ts";
import type { Expression } from "./expr/expression.ts";
import { protocolFamily } from "./expr/meta.ts";
import { destinationAddress, sourceAddress } from "./expr/payload.ts";

export const multicast4: Prefix = { bytes: new Uint8Array([224, 0, 0, 0]), bits: 4 };
export const multicast6: Prefix = {
  bytes: new Uint8Array([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
  bits: 8,
};

/** `meta nfproto ipv4`, or `ipv6`, by the length of an address: in an inet table, before any match of an address. */
export function ofFamily(addressLength: number): Expression[] {
  return [protocolFamily, equals(new Uint8Array([addressLength === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6]))];
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
