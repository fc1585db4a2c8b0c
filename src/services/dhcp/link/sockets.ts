/**
 * The sockets of an exchange with DHCPv4 servers. Everything is received below IP, because the link may have no address,
 * and because replies to a broadcast request come as either.
 */
import { SyscallError } from "../../../ffi/errno.ts";
import { ALL_CARDS, ETH_P_IP, PacketSocket } from "../../../ffi/socket/packet.ts";
import { behindHeader, type FilterRule, has, hasNoBit, LINK_HEADER } from "../../../ffi/socket/filter.ts";
import { UdpSocket } from "../../../ffi/socket/udp.ts";
import { isSameBytes } from "../../../net/address.ts";
import { decodeReply, headOfReply, type Message } from "../v4/message/message.ts";
import { CLIENT_PORT, SERVER_PORT, unwrap, wrap } from "../v4/message/packet.ts";
import type { NetnsHandle } from "./netns-handle.ts";
import { type Arrival, Replies } from "./replies.ts";

export const EVERYBODY = new Uint8Array(4).fill(255);
const NOBODY = new Uint8Array(4);

/** Where the IP header has its protocol and fragment fields, and the frame its sender's address. */
const PROTOCOL_AT = 9, FRAGMENT_AT = 6, SENDER_AT = LINK_HEADER + 6;
type Head = ReturnType<typeof headOfReply>;

const UDP = 17, MORE_FRAGMENTS_AND_OFFSET = 0x3fff, UDP_BYTES = 8;

/** Keeps the answers to this client: neither the container's own traffic nor what is for other clients of the link. */
function answersWith(head: Head): FilterRule[] {
  const when = [
    ...has(PROTOCOL_AT, [UDP]),
    ...hasNoBit(FRAGMENT_AT, MORE_FRAGMENTS_AND_OFFSET),
    ...behindHeader(has(0, [0, SERVER_PORT, 0, CLIENT_PORT])),
    ...behindHeader(head.flatMap(([at, bytes]) => has(UDP_BYTES + at, bytes))),
  ];
  return [{ keeps: true, when }];
}

export class Sockets {
  private readonly packets: PacketSocket;
  /** While the link has the address: through it the kernel finds the server, and nobody hears that the port is closed. */
  private readonly udp: UdpSocket | undefined;
  /** The answers to the last message. */
  private replies: Replies | undefined;
  private head: Head = [];

  constructor(handle: NetnsHandle, private readonly address: Uint8Array | undefined) {
    this.packets = handle.inside(() => PacketSocket.open(handle.link.index, ETH_P_IP, []));
    this.udp = address && handle.inside(() => openUdp(address, handle.link.name));
  }

  get fd(): number {
    return this.packets.fd;
  }

  /** Whether the kernel sends from the address, and receives what is for it. */
  get hasOwnEnd(): boolean {
    return this.udp !== undefined;
  }

  private expectReplies(message: Uint8Array): void {
    this.head = headOfReply(message);
    this.replies = new Replies(this.packets, answersWith(this.head), SENDER_AT);
  }

  broadcast(message: Uint8Array): void {
    this.expectReplies(message);
    this.packets.send(ALL_CARDS, wrap(this.address ?? NOBODY, EVERYBODY, message));
  }

  /** Sends from the address to the server; `mac` is where its messages came from. */
  unicast(message: Uint8Array, server: Uint8Array, mac: Uint8Array): void {
    if (this.udp === undefined) return this.unicastAtOnce(message, server, mac);
    this.expectReplies(message);
    this.udp.send({ address: server, port: SERVER_PORT }, message);
  }

  /** Sends without asking anybody for the way: the link may be gone before an answer comes. */
  unicastAtOnce(message: Uint8Array, server: Uint8Array, mac: Uint8Array): void {
    this.expectReplies(message);
    this.packets.send(mac, wrap(this.address ?? NOBODY, server, message));
  }

  get isSpent(): boolean {
    return this.replies?.isSpent === true;
  }

  /** Returns undefined when nothing has arrived. `from`: a hardware address, the server's or that of the router on the way to it. */
  receive(): Arrival<Message> | undefined {
    const packet = this.packets.receive();
    if (packet === undefined || this.replies === undefined) return undefined;
    const { from } = packet;
    const bytes = this.replies.admits(from) ? unwrap(packet.bytes, packet.isSummed) : undefined;
    return { from, message: bytes && this.isReply(bytes) ? decodeReply(bytes) : undefined };
  }

  /** The kernel has looked already, but it may have been for the answers to another message. */
  private isReply(message: Uint8Array): boolean {
    return this.head.every(([at, bytes]) => isSameBytes(bytes, message.subarray(at, at + bytes.length)));
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
