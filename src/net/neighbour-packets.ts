/** Questions who has an address of a link: ARP's (RFC 826), and those of neighbour discovery (RFC 4861). */
import { checksum6 } from "./checksum.ts";

export const ARP_REQUEST = 1, ARP_REPLY = 2;
/** Where a message for Ethernet and IPv4 has what. */
export const ARP_AT = { operation: 6, senderMac: 8, sender: 14, target: 24 } as const;
const ETHERNET = 1, IPV4 = 0x0800, ARP_BYTES = 28;

/** A `sender` of zeros says nothing about who asks (RFC 5227). */
export function arpRequest(mac: Uint8Array, sender: Uint8Array, target: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(ARP_BYTES), view = new DataView(bytes.buffer);
  view.setUint16(0, ETHERNET);
  view.setUint16(2, IPV4);
  bytes.set([mac.length, sender.length], 4);
  view.setUint16(ARP_AT.operation, ARP_REQUEST);
  bytes.set(mac, ARP_AT.senderMac);
  bytes.set(sender, ARP_AT.sender);
  bytes.set(target, ARP_AT.target);
  return bytes;
}

export const ETH_P_IPV6 = 0x86dd, ICMP6 = 58, SOLICITATION = 135, ADVERTISEMENT = 136;
/** Where a packet with a message of discovery has what, from its IPv6 header on. */
export const DISCOVERY_AT = { protocol: 6, source: 8, type: 40, target: 48 } as const;
const IP_BYTES = 40, ICMP_BYTES = 24;
/** The last three bytes of the address follow both (RFC 4291 section 2.7.1). */
const SOLICITED_NODE = Uint8Array.fromHex("ff0200000000000000000001ff"), SOLICITED_MAC = Uint8Array.fromHex("3333ff");

export function cardsOfSolicited(address: Uint8Array): Uint8Array {
  return Uint8Array.of(...SOLICITED_MAC, ...address.subarray(13));
}

/** From nobody, as for duplicate address detection. */
export function neighbourSolicitation(target: Uint8Array): Uint8Array {
  const packet = new Uint8Array(IP_BYTES + ICMP_BYTES), view = new DataView(packet.buffer);
  packet[0] = 6 << 4;
  view.setUint16(4, ICMP_BYTES);
  packet[DISCOVERY_AT.protocol] = ICMP6;
  // Routers do not pass one on, so it counts only from this link.
  packet[7] = 255;
  packet.set(SOLICITED_NODE, 24);
  packet.set(target.subarray(13), 37);
  packet[DISCOVERY_AT.type] = SOLICITATION;
  packet.set(target, DISCOVERY_AT.target);
  view.setUint16(DISCOVERY_AT.type + 2, checksum6(packet, ICMP6));
  return packet;
}
