/** A client's message in its IPv6 and UDP headers, for when its link has gone (RFC 8200, RFC 768). Pure. */
import { checksum6 } from "../../../../net/checksum.ts";

export const CLIENT_PORT = 546, SERVER_PORT = 547;
const IPV6 = 6, UDP = 17, HOP_LIMIT = 1, IP_BYTES = 40, UDP_BYTES = 8;
/** All servers and relays of the link, and the hardware address of the group. */
export const SERVERS = Uint8Array.fromHex("ff020000000000000000000000010002");
export const SERVERS_MAC = Uint8Array.fromHex("333300010002");

export function wrap(source: Uint8Array, message: Uint8Array): Uint8Array<ArrayBuffer> {
  const packet = new Uint8Array(IP_BYTES + UDP_BYTES + message.length), view = new DataView(packet.buffer);
  const length = UDP_BYTES + message.length;
  packet[0] = IPV6 << 4;
  view.setUint16(4, length);
  packet[6] = UDP;
  packet[7] = HOP_LIMIT;
  packet.set(source, 8);
  packet.set(SERVERS, 24);
  view.setUint16(IP_BYTES, CLIENT_PORT);
  view.setUint16(IP_BYTES + 2, SERVER_PORT);
  view.setUint16(IP_BYTES + 4, length);
  packet.set(message, IP_BYTES + UDP_BYTES);
  view.setUint16(IP_BYTES + 6, checksum6(packet, UDP) || 0xffff);
  return packet;
}
