/** Whether another host of the link has an IPv6 address: duplicate address detection (RFC 4862 section 5.4). */
import { PacketSocket } from "../../../ffi/socket/packet.ts";
import { type FilterRule, has, LINK_HEADER } from "../../../ffi/socket/filter.ts";
import {
  ADVERTISEMENT,
  cardsOfSolicited,
  DISCOVERY_AT,
  ETH_P_IPV6,
  ICMP6,
  neighbourSolicitation,
  SOLICITATION,
} from "../../../net/neighbour-packets.ts";
import { parseMac } from "../../../net/mac.ts";
import type { Probe } from "../lease-options.ts";
import type { NetnsHandle } from "./netns-handle.ts";
import { Probing } from "./probing.ts";

const { protocol: PROTOCOL_AT, source: SOURCE_AT, type: TYPE_AT, target: TARGET_AT } = DISCOVERY_AT;
const SENDER_MAC_AT = LINK_HEADER + 6;
const NOBODY = new Uint8Array(16);

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
  const to = cardsOfSolicited(address);
  const socket = handle.inside(() => PacketSocket.open(index, ETH_P_IPV6, received));
  return new Probing(socket, { to, bytes: neighbourSolicitation(address) }, probe, now);
}
