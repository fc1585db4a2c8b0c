/** Whether another host of the link has an IPv6 address: duplicate address detection (RFC 4862 section 5.4). */
import { PacketSocket } from "../../../ffi/socket/packet.ts";
import { type FilterRule, has, LINK_HEADER } from "../../../ffi/socket/filter.ts";
import { parseMac } from "../../../net/mac.ts";
import { checksum6 } from "../v6/message/packet.ts";
import type { Probe } from "../lease-options.ts";
import type { NetnsHandle } from "./netns-handle.ts";
import { Probing } from "./probing.ts";

const ETH_P_IPV6 = 0x86dd, ICMP6 = 58, SOLICITATION = 135, ADVERTISEMENT = 136;
const IP_BYTES = 40, ICMP_BYTES = 24, PROTOCOL_AT = 6, SOURCE_AT = 8, TYPE_AT = 40, TARGET_AT = 48;
const SENDER_MAC_AT = LINK_HEADER + 6;
const NOBODY = new Uint8Array(16);
/** The last three bytes of the address follow both (RFC 4291 section 2.7.1). */
const SOLICITED_NODE = Uint8Array.fromHex("ff0200000000000000000001ff"), SOLICITED_MAC = Uint8Array.fromHex("3333ff");

/** Messages of another host that has the address, or that asks for it as we do. */
function ofRivals(mac: Uint8Array, address: Uint8Array): FilterRule[] {
  const discovery = has(PROTOCOL_AT, [ICMP6]), target = has(TARGET_AT, address);
  return [
    { keeps: false, when: has(SENDER_MAC_AT, mac) },
    { keeps: true, when: [...discovery, ...has(TYPE_AT, [ADVERTISEMENT]), ...target] },
    { keeps: true, when: [...discovery, ...has(TYPE_AT, [SOLICITATION]), ...target, ...has(SOURCE_AT, NOBODY)] },
  ];
}

export function neighbourProbing(handle: NetnsHandle, address: Uint8Array, probe: Probe, now: number): Probing {
  const { index, mac } = handle.link, received = ofRivals(parseMac(mac)!, address);
  const to = Uint8Array.of(...SOLICITED_MAC, ...address.subarray(13));
  const socket = handle.inside(() => PacketSocket.open(index, ETH_P_IPV6, received));
  return new Probing(socket, { to, bytes: solicitation(address) }, probe, now);
}

function solicitation(target: Uint8Array): Uint8Array {
  const packet = new Uint8Array(IP_BYTES + ICMP_BYTES), view = new DataView(packet.buffer);
  packet[0] = 6 << 4;
  view.setUint16(4, ICMP_BYTES);
  packet[6] = ICMP6;
  // Routers do not pass one on, so it counts only from this link.
  packet[7] = 255;
  packet.set(SOLICITED_NODE, 24);
  packet.set(target.subarray(13), 37);
  packet[TYPE_AT] = SOLICITATION;
  packet.set(target, TARGET_AT);
  view.setUint16(TYPE_AT + 2, checksum6(packet, ICMP6));
  return packet;
}
