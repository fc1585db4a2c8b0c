/**
 * Sockets on a link, below the kernel's own IP (packet(7)): for a host without an address, and for frames in the name of a
 * container that is gone.
 */
import { EAGAIN, EINTR, SyscallError } from "../errno.ts";
import { closeFile, whileOpen } from "../files.ts";
import { check, lastErrno, libc } from "../libc.ts";
import { controlOfLast, receivePacket, senderOfLast } from "./message.ts";
import { type FilterRule, ofThisHost, setFilter } from "./filter.ts";
import { AF_PACKET, openSocket, preparing, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_RAW } from "./socket.ts";

export const ETH_P_IP = 0x0800, ETH_P_ARP = 0x0806;
/** The hardware address of everybody on the link. */
export const ALL_CARDS = new Uint8Array(6).fill(255);
const SOL_PACKET = 263, PACKET_AUXDATA = 8;
const ADDRESS_BYTES = 20, MAC_AT = 12, MAC_BYTES = 6;
/** The sender's kernel has left the sum to a card; over a veth pair there is none. */
const TP_STATUS_CSUMNOTREADY = 1 << 3;
const LONGEST_BYTES = 65536;

export interface Packet {
  /** The packet without the header of the link, valid until the next packet. */
  bytes: Uint8Array;
  /** The hardware address of who sent it. */
  from: Uint8Array;
  /** The sums in it were computed. */
  isSummed: boolean;
}

/** One buffer for all: packets are handled one after the other. */
let buffer: Uint8Array | undefined;

export class PacketSocket {
  private constructor(readonly fd: number, private readonly link: number, private readonly protocol: number) {}

  /** Opens a socket in the namespace that the thread is in. It gets only what the rules keep, and nothing that this host sends. */
  static open(link: number, protocol: number, rules: readonly FilterRule[]): PacketSocket {
    // Protocol 0: nothing arrives before there is a filter.
    return preparing(openSocket("socket AF_PACKET", AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK), (fd) => {
      const socket = new PacketSocket(fd, link, protocol);
      socket.setFilter(rules);
      libc.setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, Int32Array.of(1), 4);
      const address = linkAddress(link, protocol);
      check("bind AF_PACKET", libc.bind(fd, address, address.length), `link ${link}`);
      return socket;
    });
  }

  /** Replaces the earlier filter. Packets that have arrived stay. */
  setFilter(rules: readonly FilterRule[]): void {
    setFilter(this.fd, [{ keeps: false, when: ofThisHost }, ...rules]);
  }

  send(to: Uint8Array, bytes: Uint8Array): void {
    const address = linkAddress(this.link, this.protocol, to);
    check("sendto AF_PACKET", Number(libc.sendto(this.fd, bytes, bytes.length, 0, address, address.length)));
  }

  /** Returns undefined when nothing has arrived. Throws when the link is down or gone. */
  receive(): Packet | undefined {
    buffer ??= new Uint8Array(LONGEST_BYTES);
    for (;;) {
      const length = receivePacket(this.fd, buffer);
      if (length < 0) {
        const errno = lastErrno();
        if (errno === EAGAIN) return undefined;
        if (errno === EINTR) continue;
        throw new SyscallError("recvmsg AF_PACKET", errno);
      }
      const sender = senderOfLast();
      const status = controlOfLast(SOL_PACKET, PACKET_AUXDATA)?.getUint32(0, true) ?? 0;
      return {
        bytes: buffer.subarray(0, length),
        from: sender.slice(MAC_AT, MAC_AT + MAC_BYTES),
        isSummed: (status & TP_STATUS_CSUMNOTREADY) === 0,
      };
    }
  }

  close(): void {
    closeFile(this.fd);
  }
}

/** A whole frame, with its header, out of the link. */
export function sendFrame(link: number, frame: Uint8Array): void {
  const address = linkAddress(link, 0);
  whileOpen(openSocket("socket AF_PACKET", AF_PACKET, SOCK_RAW), (fd) => {
    check("sendto AF_PACKET", Number(libc.sendto(fd, frame, frame.length, 0, address, address.length)));
  });
}

/** struct sockaddr_ll */
function linkAddress(link: number, protocol: number, mac?: Uint8Array): Uint8Array {
  const address = new Uint8Array(ADDRESS_BYTES), view = new DataView(address.buffer);
  view.setUint16(0, AF_PACKET, true);
  view.setUint16(2, protocol);
  view.setInt32(4, link, true);
  if (mac !== undefined) {
    address[11] = MAC_BYTES;
    address.set(mac, MAC_AT);
  }
  return address;
}
