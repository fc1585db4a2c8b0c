/** The frames of a simulated link in words, and those of others: servers, and hosts that have an address. */
import type { Message } from "../../../src/services/dhcp/v4/message/message.ts";
import { ADVERTISE, type Message6, RELEASE, REPLY, SOLICIT } from "../../../src/services/dhcp/v6/message/message.ts";
import { parseMac } from "../../../src/net/mac.ts";
import { type Said, said } from "../dhcp6-simulation.ts";
import { kindOf } from "./message-name.ts";

export const RIVAL_MAC = "02:00:00:00:00:99";

export const names6 = ["", "SOLICIT", "", "REQUEST", "CONFIRM", "RENEW", "REBIND", "", "RELEASE", "DECLINE"];

/** A DHCPv6 server that gives what is usual, and nothing in answer to a RELEASE. */
export const server6 = (say: Said = {}) => (asked: Message6): Message6[] =>
  asked.type === RELEASE ? [] : [said(asked.type === SOLICIT ? ADVERTISE : REPLY, asked, say)];

/** "DISCOVER to everybody"; with a hardware address where it is not left to the kernel, nor everybody's. */
export function nameOf(message: Message, source: string, destination: string, mac?: string): string {
  const isForAll = destination === "255.255.255.255" && mac === "ff:ff:ff:ff:ff:ff";
  const goal = isForAll ? "everybody" : `${destination}${mac === undefined ? "" : ` at ${mac}`}`;
  return `${kindOf(message)}${source === "0.0.0.0" ? "" : ` from ${source}`} to ${goal}`;
}

/** Who has the address says so. */
export function arpReply(request: Uint8Array): Uint8Array {
  const reply = request.slice();
  reply[7] = 2;
  reply.set(parseMac(RIVAL_MAC)!, 8);
  reply.set(request.subarray(24, 28), 14);
  return reply;
}

export function advertisement(solicitation: Uint8Array): Uint8Array {
  const packet = solicitation.slice();
  packet[40] = 136;
  return packet;
}
