/** The sum that packets of IP and its protocols have. */

/** RFC 1071: 0 over what contains its own sum. */
export function checksum(bytes: Uint8Array, begin = 0): number {
  let sum = begin + sumOf(bytes);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

export function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  return sum;
}

const IPV6_HEADER_BYTES = 40;

/** Over the addresses, the next header's number and length, and what follows the header of IPv6 (RFC 8200 section 8.1). */
export function checksum6(packet: Uint8Array, nextHeader: number): number {
  return checksum(packet.subarray(8), packet.length - IPV6_HEADER_BYTES + nextHeader);
}
