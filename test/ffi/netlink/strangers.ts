/** Run inside a namespace: what becomes of a datagram that another socket sends to each kind of socket, as JSON. */
import { errnoText } from "../../../src/ffi/errno.ts";
import { lastErrno, libc } from "../../../src/ffi/libc.ts";
import { openEvents, openNetfilterEvents } from "../../../src/ffi/netlink/events.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { RTNLGRP_IPV4_IFADDR } from "../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { AF_NETLINK, openSocket, SOCK_RAW } from "../../../src/ffi/socket/socket.ts";

const MSG_DONTWAIT = 0x40;

function boundOnly(): { fd: number } {
  const fd = openSocket("socket", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  libc.bind(fd, Uint8Array.of(AF_NETLINK, ...new Uint8Array(11)), 12);
  return { fd };
}

const sockets = {
  "a stranger's own": [NETLINK_ROUTE, boundOnly()],
  "for requests": [NETLINK_ROUTE, openNetlink(NETLINK_ROUTE)],
  "for netfilter": [NETLINK_NETFILTER, openNetlink(NETLINK_NETFILTER)],
  "for notifications": [NETLINK_ROUTE, openEvents(RTNLGRP_IPV4_IFADDR)],
  "for notifications of netfilter": [NETLINK_NETFILTER, openNetfilterEvents()],
} as const;

function sent(protocol: number, to: number): string {
  const stranger = openSocket("socket", AF_NETLINK, SOCK_RAW, protocol), datagram = new Uint8Array(36);
  const address = new Uint8Array(12), length = Uint8Array.of(12, 0, 0, 0);
  libc.getsockname(to, address, length);
  const outcome = Number(libc.sendto(stranger, datagram, datagram.length, MSG_DONTWAIT, address, 12));
  const text = outcome < 0 ? errnoText(lastErrno()) : "sent";
  const received = Number(libc.recvfrom(to, datagram, datagram.length, MSG_DONTWAIT, null, null)) > 0;
  libc.close(stranger);
  return received ? "received" : text;
}

const outcomes = Object.entries(sockets).map(([what, [protocol, { fd }]]) => [what, sent(protocol, fd)]);
console.log(JSON.stringify(Object.fromEntries(outcomes)));
