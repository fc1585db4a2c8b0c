/**
 * The sockets of an exchange with DHCPv4 servers. Everything is received below IP, because the link may have no address,
 * and because replies to a broadcast request come as either.
 */
import { SyscallError } from "../../ffi/errno.ts";
import {
  ANSWER,
  ETH_P_IP,
  HEADER_LENGTH,
  IF_ANY_BIT,
  IF_EQUAL,
  type Instruction,
  LOAD_BYTE,
  LOAD_HALF,
  LOAD_HALF_BEHIND_HEADER,
  NOTHING,
  PacketSocket,
  WHOLE,
} from "../../ffi/packet-socket.ts";
import { UdpSocket } from "../../ffi/udp-socket.ts";
import { decodeReply, type Message } from "../v4/message/message.ts";
import { CLIENT_PORT, SERVER_PORT, unwrap, wrap } from "../v4/message/packet.ts";
import type { Visit } from "./place.ts";

const EVERYBODY = new Uint8Array(4).fill(255), NOBODY = new Uint8Array(4), ALL_CARDS = new Uint8Array(6).fill(255);

const UDP = 17, OFFSET_BITS = 0x1fff;

/** UDP to the client's port, and no later part of a packet: the rest is the container's own traffic. */
const toClients: readonly Instruction[] = [
  [LOAD_BYTE, 0, 0, 9],
  [IF_EQUAL, 0, 6, UDP],
  [LOAD_HALF, 0, 0, 6],
  [IF_ANY_BIT, 4, 0, OFFSET_BITS],
  [HEADER_LENGTH, 0, 0, 0],
  [LOAD_HALF_BEHIND_HEADER, 0, 0, 2],
  [IF_EQUAL, 0, 1, CLIENT_PORT],
  [ANSWER, 0, 0, WHOLE],
  [ANSWER, 0, 0, NOTHING],
];

export interface Reply {
  message: Message;
  /** The hardware address of who sent it: the server, or the router on the way to it. */
  from: Uint8Array;
}

export class Sockets {
  private readonly packets: PacketSocket;
  /** While the link has the address: through it the kernel finds the server, and nobody hears that the port is closed. */
  private readonly udp: UdpSocket | undefined;

  constructor(visit: Visit, private readonly address: Uint8Array | undefined) {
    this.packets = visit.inside(() => PacketSocket.open(visit.link.index, ETH_P_IP, toClients));
    this.udp = address && visit.inside(() => openUdp(address, visit.link.name));
  }

  get fd(): number {
    return this.packets.fd;
  }

  /** Whether the kernel sends from the address, and receives what is for it. */
  get hasOwnEnd(): boolean {
    return this.udp !== undefined;
  }

  broadcast(message: Uint8Array): void {
    this.packets.send(ALL_CARDS, wrap(this.address ?? NOBODY, EVERYBODY, message));
  }

  /** From the address, to the server; `mac` is where its messages came from. */
  unicast(message: Uint8Array, server: Uint8Array, mac: Uint8Array): void {
    if (this.udp !== undefined) this.udp.send({ address: server, port: SERVER_PORT }, message);
    else this.unicastAtOnce(message, server, mac);
  }

  /** Without asking anybody for the way: the link may be gone before an answer comes. */
  unicastAtOnce(message: Uint8Array, server: Uint8Array, mac: Uint8Array): void {
    this.packets.send(mac, wrap(this.address ?? NOBODY, server, message));
  }

  /** Undefined when there is none. What is no server's message is passed over. */
  receive(): Reply | undefined {
    for (;;) {
      const packet = this.packets.receive();
      if (packet === undefined) return undefined;
      const wrapped = unwrap(packet.bytes, packet.isSummed);
      const message = wrapped && decodeReply(wrapped.message);
      if (message !== undefined) return { message, from: packet.from };
    }
  }

  close(): void {
    this.packets.close();
    this.udp?.close();
  }
}

/** Undefined when the link does not have the address, or another program in the container has the port. */
function openUdp(address: Uint8Array, ifName: string): UdpSocket | undefined {
  try {
    return UdpSocket.open({ address, port: CLIENT_PORT }, ifName);
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
