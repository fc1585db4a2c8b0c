/** Whether another host of the link has an address, and telling the others that we have it (RFC 5227). */
import { ANSWER, ETH_P_ARP, type Instruction, type Packet, PacketSocket, WHOLE } from "../../ffi/packet-socket.ts";
import { parseMac } from "../../net/mac.ts";
import type { Probe } from "../wishes.ts";
import type { Visit } from "./place.ts";
import { isAt, Probing } from "./probing.ts";

const REQUEST = 1, REPLY = 2, ETHERNET = 1, IPV4 = 0x0800;
const SENDER_MAC_AT = 8, SENDER_AT = 14, TARGET_AT = 24, BYTES = 28;
const ALL_CARDS = new Uint8Array(6).fill(255), NOBODY = new Uint8Array(4);
const everything: readonly Instruction[] = [[ANSWER, 0, 0, WHOLE]];

export class ArpProbing extends Probing {
  private readonly mac: Uint8Array;

  constructor(visit: Visit, private readonly address: Uint8Array, probe: Probe, now: number) {
    super(openSocket(visit), probe, now);
    this.mac = parseMac(visit.link.mac)!;
  }

  protected ask(): void {
    this.socket.send(ALL_CARDS, request(this.mac, NOBODY, this.address));
  }

  protected isOfRival({ bytes }: Packet): boolean {
    if (bytes.length < BYTES || isAt(bytes, SENDER_MAC_AT, this.mac)) return false;
    const operation = (bytes[6]! << 8) | bytes[7]!;
    if (isAt(bytes, SENDER_AT, this.address)) return operation === REQUEST || operation === REPLY;
    return operation === REQUEST && isAt(bytes, TARGET_AT, this.address) && isAt(bytes, SENDER_AT, NOBODY);
  }
}

/** RFC 5227 section 2.3: who has remembered another card for the address forgets it. */
export function announce(visit: Visit, address: Uint8Array): void {
  const socket = openSocket(visit);
  try {
    socket.send(ALL_CARDS, request(parseMac(visit.link.mac)!, address, address));
  } finally {
    socket.close();
  }
}

function openSocket(visit: Visit): PacketSocket {
  return visit.inside(() => PacketSocket.open(visit.link.index, ETH_P_ARP, everything));
}

function request(mac: Uint8Array, sender: Uint8Array, target: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(BYTES), view = new DataView(bytes.buffer);
  view.setUint16(0, ETHERNET);
  view.setUint16(2, IPV4);
  bytes.set([mac.length, sender.length], 4);
  view.setUint16(6, REQUEST);
  bytes.set(mac, SENDER_MAC_AT);
  bytes.set(sender, SENDER_AT);
  bytes.set(target, TARGET_AT);
  return bytes;
}
