/**
 * A message in its IPv4 and UDP headers, for sockets below the kernel's own IP (packet(7)): before there is an address,
 * and after its link has gone (RFC 791, RFC 768). Pure.
 */
import { checksum, sumOf } from "../../../../net/checksum.ts";

export const CLIENT_PORT = 68, SERVER_PORT = 67;
const IPV4 = 4, UDP = 17, TIME_TO_LIVE = 64, IP_BYTES = 20, UDP_BYTES = 8;
const MORE_FRAGMENTS_AND_OFFSET = 0x3fff;

/** Makes a packet from a client to a server. */
export function wrap(source: Uint8Array, destination: Uint8Array, message: Uint8Array): Uint8Array<ArrayBuffer> {
  const packet = new Uint8Array(IP_BYTES + UDP_BYTES + message.length), view = new DataView(packet.buffer);
  packet[0] = (IPV4 << 4) | (IP_BYTES / 4);
  view.setUint16(2, packet.length);
  packet[8] = TIME_TO_LIVE;
  packet[9] = UDP;
  packet.set(source, 12);
  packet.set(destination, 16);
  view.setUint16(10, checksum(packet.subarray(0, IP_BYTES)));
  view.setUint16(IP_BYTES, CLIENT_PORT);
  view.setUint16(IP_BYTES + 2, SERVER_PORT);
  view.setUint16(IP_BYTES + 4, UDP_BYTES + message.length);
  packet.set(message, IP_BYTES + UDP_BYTES);
  // A sum of 0 means that the packet has no sum.
  view.setUint16(IP_BYTES + 6, udpChecksum(packet, IP_BYTES) || 0xffff);
  return packet;
}

/**
 * The message that came from a server to a client, or undefined. `isSummed`: the sender's kernel has summed it up; over a
 * veth pair it leaves that to a card that is not there.
 */
export function unwrap(packet: Uint8Array, isSummed: boolean): Uint8Array | undefined {
  if (packet.length < IP_BYTES + UDP_BYTES || packet[0]! >> 4 !== IPV4 || packet[9] !== UDP) return undefined;
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  const udpAt = (packet[0]! & 0x0f) * 4, end = view.getUint16(2);
  if (udpAt < IP_BYTES || end > packet.length || udpAt + UDP_BYTES > end) return undefined;
  if (view.getUint16(6) & MORE_FRAGMENTS_AND_OFFSET || checksum(packet.subarray(0, udpAt)) !== 0) return undefined;
  const length = view.getUint16(udpAt + 4);
  if (length < UDP_BYTES || udpAt + length > end) return undefined;
  if (view.getUint16(udpAt) !== SERVER_PORT || view.getUint16(udpAt + 2) !== CLIENT_PORT) return undefined;
  const whole = packet.subarray(0, udpAt + length);
  if (isSummed && view.getUint16(udpAt + 6) !== 0 && udpChecksum(whole, udpAt) !== 0) return undefined;
  return whole.slice(udpAt + UDP_BYTES);
}

/** Over the addresses, the protocol and the length, too. */
function udpChecksum(packet: Uint8Array, udpAt: number): number {
  return checksum(packet.subarray(udpAt), sumOf(packet.subarray(12, 20)) + UDP + packet.length - udpAt);
}
