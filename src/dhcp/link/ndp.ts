/** Whether another host of the link has an IPv6 address: duplicate address detection (RFC 4862 section 5.4). */
import {
  ANSWER,
  IF_EQUAL,
  type Instruction,
  LOAD_BYTE,
  NOTHING,
  type Packet,
  PacketSocket,
  WHOLE,
} from "../../ffi/packet-socket.ts";
import { parseMac } from "../../net/mac.ts";
import { checksum } from "../v6/message/packet.ts";
import type { Probe } from "../wishes.ts";
import type { Visit } from "./place.ts";
import { isAt, Probing } from "./probing.ts";

const ETH_P_IPV6 = 0x86dd, ICMP6 = 58, SOLICITATION = 135, ADVERTISEMENT = 136;
const IP_BYTES = 40, ICMP_BYTES = 24, SOURCE_AT = 8, TYPE_AT = 40, TARGET_AT = 48;
const NOBODY = new Uint8Array(16);
/** The last three bytes of the address follow both (RFC 4291 section 2.7.1). */
const SOLICITED_NODE = Uint8Array.fromHex("ff0200000000000000000001ff"), SOLICITED_MAC = Uint8Array.fromHex("3333ff");

/** Neighbour discovery, and nothing of the container's own traffic. */
const discovery: readonly Instruction[] = [
  [LOAD_BYTE, 0, 0, 6],
  [IF_EQUAL, 0, 4, ICMP6],
  [LOAD_BYTE, 0, 0, TYPE_AT],
  [IF_EQUAL, 1, 0, SOLICITATION],
  [IF_EQUAL, 0, 1, ADVERTISEMENT],
  [ANSWER, 0, 0, WHOLE],
  [ANSWER, 0, 0, NOTHING],
];

export class NeighbourProbing extends Probing {
  private readonly mac: Uint8Array;

  constructor(visit: Visit, private readonly address: Uint8Array, probe: Probe, now: number) {
    super(visit.inside(() => PacketSocket.open(visit.link.index, ETH_P_IPV6, discovery)), probe, now);
    this.mac = parseMac(visit.link.mac)!;
  }

  protected ask(): void {
    this.socket.send(Uint8Array.of(...SOLICITED_MAC, ...this.address.subarray(13)), solicitation(this.address));
  }

  protected isOfRival({ bytes, from }: Packet): boolean {
    if (bytes.length < IP_BYTES + ICMP_BYTES || isAt(from, 0, this.mac) || !isAt(bytes, TARGET_AT, this.address)) {
      return false;
    }
    return bytes[TYPE_AT] === ADVERTISEMENT || isAt(bytes, SOURCE_AT, NOBODY);
  }
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
  view.setUint16(TYPE_AT + 2, checksum(packet, ICMP6));
  return packet;
}
