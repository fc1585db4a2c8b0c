/** The socket of an exchange with DHCPv6 servers, and what a link needs before it can speak IPv6. */
import { AF_INET6 } from "../../../ffi/socket/socket.ts";
import { EADDRNOTAVAIL, SyscallError } from "../../../ffi/errno.ts";
import { has, IP_HEADER } from "../../../ffi/socket/filter.ts";
import { tryWriteSysctl } from "../../../ffi/sysctl.ts";
import { UdpSocket } from "../../../ffi/socket/udp.ts";
import { isLinkLocal, isSameBytes } from "../../../net/address.ts";
import { decode, headsOfReply, type Message6 } from "../v6/message/message.ts";
import { CLIENT_PORT, SERVER_PORT, SERVERS } from "../v6/message/packet.ts";
import type { NetnsHandle } from "./netns-handle.ts";
import { type Arrival, Replies } from "./replies.ts";

/** Where a packet has its source's address, and its message. */
const SOURCE_AT = IP_HEADER + 8, MESSAGE_AT = 8;

export class Sockets6 {
  private readonly udp: UdpSocket;
  readonly linkLocal: Uint8Array;
  private readonly link: number;
  /** The answers to the last message. */
  private replies: Replies | undefined;
  private heads: Uint8Array[] = [];

  /** Throws EADDRNOTAVAIL while the link has no link-local address that is known to be its own. */
  constructor(handle: NetnsHandle) {
    const { link } = handle,
      own = handle.address(AF_INET6, (one) => isLinkLocal(one.bytes) && !one.tentative && !one.duplicate);
    if (own === undefined) {
      throw new SyscallError("bind", EADDRNOTAVAIL, `${link.name} has no link-local address yet`);
    }
    this.linkLocal = own.bytes;
    this.link = link.index;
    const end = { address: own.bytes, port: CLIENT_PORT, link: link.index };
    this.udp = handle.inside(() => UdpSocket.open(end, link.name));
  }

  get fd(): number {
    return this.udp.fd;
  }

  /** Sends to all servers of the link. */
  multicast(message: Uint8Array): void {
    this.heads = headsOfReply(message);
    const answers = this.heads.map((head) => ({ keeps: true, when: has(MESSAGE_AT, head) }));
    this.replies = new Replies(this.udp, answers, SOURCE_AT);
    this.udp.send({ address: SERVERS, port: SERVER_PORT, link: this.link }, message);
  }

  get isSpent(): boolean {
    return this.replies?.isSpent === true;
  }

  /** Returns undefined when nothing has arrived. */
  receive(): Arrival<Message6> | undefined {
    const packet = this.udp.receive();
    if (packet === undefined || this.replies === undefined) return undefined;
    const { from, bytes } = packet, isRead = this.replies.admits(from) && this.isReply(bytes);
    return { from, message: isRead ? decode(bytes) : undefined };
  }

  /** The kernel has looked already, but it may have been for the answers to another message. */
  private isReply(bytes: Uint8Array): boolean {
    return this.heads.some((head) => isSameBytes(head, bytes.subarray(0, head.length)));
  }

  close(): void {
    this.udp.close();
  }
}

/**
 * Call this before the link is set up. Its own link-local address need not be checked for duplicates, which takes a
 * second: it comes from the link's hardware address. Routes come from routers.
 */
export function prepareForV6(handle: NetnsHandle): void {
  const { name } = handle.link;
  handle.inside(() => {
    tryWriteSysctl(`net/ipv6/conf/${name}/disable_ipv6`, "0");
    // 2: also when the container forwards packets.
    tryWriteSysctl(`net/ipv6/conf/${name}/accept_ra`, "2");
    if (!handle.link.up) tryWriteSysctl(`net/ipv6/conf/${name}/accept_dad`, "0");
  });
}

/** From now on, addresses that others give the link are checked again. */
export function checkDuplicatesAgain(handle: NetnsHandle): void {
  handle.inside(() => tryWriteSysctl(`net/ipv6/conf/${handle.link.name}/accept_dad`, "1"));
}
