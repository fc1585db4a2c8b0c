/** Whether another host of the link has an address, and telling the others that we have it (RFC 5227). */
import { ALL_CARDS, ETH_P_ARP, PacketSocket } from "../../../ffi/socket/packet.ts";
import { type FilterRule, has } from "../../../ffi/socket/filter.ts";
import { ARP_AT, ARP_REPLY, ARP_REQUEST, arpRequest } from "../../../net/neighbour-packets.ts";
import { parseMac } from "../../../net/mac.ts";
import type { Probe } from "../lease-options.ts";
import type { NetnsHandle } from "./netns-handle.ts";
import { Probing } from "./probing.ts";

const { operation: OPERATION_AT, senderMac: SENDER_MAC_AT, sender: SENDER_AT, target: TARGET_AT } = ARP_AT;
const NOBODY = new Uint8Array(4);

/** Messages of another host that has the address, or that probes it as we do. */
function ofRivals(mac: Uint8Array, address: Uint8Array): FilterRule[] {
  const request = has(OPERATION_AT, [0, ARP_REQUEST]), reply = has(OPERATION_AT, [0, ARP_REPLY]);
  const sender = has(SENDER_AT, address), target = has(TARGET_AT, address);
  return [
    { keeps: false, when: has(SENDER_MAC_AT, mac) },
    { keeps: true, when: [...request, ...sender] },
    { keeps: true, when: [...reply, ...sender] },
    { keeps: true, when: [...request, ...target, ...has(SENDER_AT, NOBODY)] },
  ];
}

export function arpProbing(handle: NetnsHandle, address: Uint8Array, probe: Probe, now: number): Probing {
  const mac = parseMac(handle.link.mac)!, question = { to: ALL_CARDS, bytes: arpRequest(mac, NOBODY, address) };
  return new Probing(openSocket(handle, ofRivals(mac, address)), question, probe, now);
}

/** RFC 5227 section 2.3: who has remembered another card for the address forgets it. */
export function announce(handle: NetnsHandle, address: Uint8Array): void {
  const socket = openSocket(handle, []);
  try {
    socket.send(ALL_CARDS, arpRequest(parseMac(handle.link.mac)!, address, address));
  } finally {
    socket.close();
  }
}

function openSocket(handle: NetnsHandle, received: readonly FilterRule[]): PacketSocket {
  return handle.inside(() => PacketSocket.open(handle.link.index, ETH_P_ARP, received));
}
