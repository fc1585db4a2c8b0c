/** Whether another host of the link has an address, and telling the others that we have it (RFC 5227). */
import { ETH_P_ARP, type Instruction, PacketSocket } from "../../ffi/packet-socket.ts";
import { parseMac } from "../../net/mac.ts";
import type { Probe } from "../wishes.ts";
import type { Visit } from "./place.ts";

const REQUEST = 1, REPLY = 2, ETHERNET = 1, IPV4 = 0x0800;
const SENDER_MAC_AT = 8, SENDER_AT = 14, TARGET_AT = 24, BYTES = 28;
const ALL_CARDS = new Uint8Array(6).fill(255);
const everything: readonly Instruction[] = [[0x06, 0, 0, 0xffffffff]];
const NOBODY = new Uint8Array(4);

/** How many probes, and how long each is waited for, in seconds. */
const thoroughness: Record<Probe, { count: number; pause: number }> = {
  none: { count: 0, pause: 0 },
  fast: { count: 1, pause: 0.05 },
  full: { count: 3, pause: 1.5 },
};

export class Probing {
  private readonly socket: PacketSocket;
  private readonly mac: Uint8Array;
  private left: number;
  private readonly pause: number;
  /** When `look` is to be called, whether or not something has arrived. */
  due: number;

  constructor(visit: Visit, private readonly address: Uint8Array, probe: Probe, now: number) {
    this.mac = parseMac(visit.link.mac)!;
    this.socket = visit.inside(() => PacketSocket.open(visit.link.index, ETH_P_ARP, everything));
    ({ count: this.left, pause: this.pause } = thoroughness[probe]);
    this.due = now;
  }

  get fd(): number {
    return this.socket.fd;
  }

  /** "taken", "free", or undefined while it is not known. */
  look(now: number): "taken" | "free" | undefined {
    for (let packet = this.socket.receive(); packet !== undefined; packet = this.socket.receive()) {
      if (this.isOfRival(packet.bytes)) return "taken";
    }
    if (now < this.due) return undefined;
    if (this.left-- <= 0) return "free";
    // With no address of the sender's, so that nobody learns a wrong one.
    this.socket.send(ALL_CARDS, request(this.mac, NOBODY, this.address));
    this.due = now + this.pause;
    return undefined;
  }

  /** Another host that has the address, or is about to take it. */
  private isOfRival(bytes: Uint8Array): boolean {
    if (bytes.length < BYTES || isAt(bytes, SENDER_MAC_AT, this.mac)) return false;
    const operation = (bytes[6]! << 8) | bytes[7]!;
    if (isAt(bytes, SENDER_AT, this.address)) return operation === REQUEST || operation === REPLY;
    return operation === REQUEST && isAt(bytes, TARGET_AT, this.address) && isAt(bytes, SENDER_AT, NOBODY);
  }

  close(): void {
    this.socket.close();
  }
}

/** RFC 5227 section 2.3: who has remembered another card for the address forgets it. */
export function announce(visit: Visit, address: Uint8Array): void {
  const socket = visit.inside(() => PacketSocket.open(visit.link.index, ETH_P_ARP, everything));
  try {
    socket.send(ALL_CARDS, request(parseMac(visit.link.mac)!, address, address));
  } finally {
    socket.close();
  }
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

function isAt(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  return wanted.every((byte, index) => byte === bytes[at + index]);
}
