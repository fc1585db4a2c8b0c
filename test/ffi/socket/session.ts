/**
 * Run in a network namespace of its own, with a pair of links "a" and "b", of which "a" has addresses: packets go from one
 * to the other, and datagrams over the loopback. Prints what came of it as one JSON document.
 */
import { NETLINK_ROUTE, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { linkIndex } from "../../../src/ffi/netlink/route/link.ts";
import { poll, POLLIN } from "../../../src/ffi/poll.ts";
import { has } from "../../../src/ffi/socket/filter.ts";
import { ALL_CARDS, ETH_P_ARP, ETH_P_IP, PacketSocket, sendFrame } from "../../../src/ffi/socket/packet.ts";
import { UdpSocket } from "../../../src/ffi/socket/udp.ts";
import { formatAddress, parseAddress } from "../../../src/net/address.ts";
import { formatMac } from "../../../src/net/mac.ts";

const route = openNetlink(NETLINK_ROUTE), a = linkIndex(route, "a")!, b = linkIndex(route, "b")!;
const report: Record<string, unknown> = {};
const told = (work: () => unknown) => {
  try {
    return work();
  } catch (error) {
    return (error as Error).message;
  }
};

const everything = [{ keeps: true, when: [] }];
const sender = PacketSocket.open(a, ETH_P_ARP, everything), receiver = PacketSocket.open(b, ETH_P_ARP, everything);
const next = (socket: PacketSocket) => {
  poll([{ fd: socket.fd, events: POLLIN }], 10_000);
  const { bytes, from, isSummed } = socket.receive()!;
  return [bytes.toHex(), formatMac(from), isSummed];
};
report.nothingYet = receiver.receive() ?? null;
sender.send(ALL_CARDS, Uint8Array.of(1, 2, 3));
report.toAll = next(receiver);
sender.send(Uint8Array.of(2, 0, 0, 0, 0, 0xb), Uint8Array.of(4));
report.toOne = next(receiver);
report.nothingOfOurs = sender.receive() ?? null;
sendFrame(a, Uint8Array.fromHex("ffffffffffff" + "0200000000cc" + "0806" + "0909"));
report.frame = next(receiver);
receiver.setFilter([{ keeps: true, when: has(0, [7]) }]);
sender.send(ALL_CARDS, Uint8Array.of(6));
sender.send(ALL_CARDS, Uint8Array.of(7));
report.filtered = [next(receiver), receiver.receive() ?? null];

// The kernel leaves the sum of what it sends itself to the card, which a pair of links has not.
const ip = PacketSocket.open(b, ETH_P_IP, has(9, [17]).map((one) => ({ keeps: true, when: [one] })));
const address = parseAddress("10.9.0.1")!, peer = parseAddress("10.9.0.2")!;
const overA = UdpSocket.open({ address, port: 5000 }, "a");
overA.send({ address: peer, port: 6000 }, Uint8Array.of(1));
report.unsummed = next(ip).slice(1);
report.noLink = told(() => PacketSocket.open(9999, ETH_P_IP, everything));
report.noFrame = told(() => sendFrame(9999, new Uint8Array(20)));

const udp = (text: string, port: number, link?: number, ifName = "lo") =>
  UdpSocket.open({ address: parseAddress(text)!, port, link }, ifName);
const exchange = (from: string, to: string) => {
  const one = udp(from, 7001), other = udp(to, 7002);
  const nothing = other.receive() ?? null;
  one.send({ address: parseAddress(to)!, port: 7002 }, Uint8Array.of(1, 2, 3));
  poll([{ fd: other.fd, events: POLLIN }], 10_000);
  const first = other.receive()!;
  other.setFilter([{ keeps: true, when: has(8, [5]) }]); // behind the header of UDP
  for (const byte of [4, 5]) one.send({ address: parseAddress(to)!, port: 7002 }, Uint8Array.of(byte));
  poll([{ fd: other.fd, events: POLLIN }], 10_000);
  const second = other.receive()!;
  for (const socket of [one, other]) socket.close();
  return [nothing, first.bytes.toHex(), formatAddress(first.from), second.bytes.toHex()];
};
report.v4 = exchange("127.0.0.1", "127.0.0.2");
report.v6 = exchange("::1", "::1");
const linkLocal = udp("fe80::5", 7001, a, "a");
report.twice = told(() => udp("fe80::5", 7001, a, "a").close()) ?? null;
report.refused = [
  told(() => udp("127.0.0.1", 7001, undefined, "none")),
  told(() => udp("10.99.0.1", 7001)),
  told(() => linkLocal.send({ address: parseAddress("127.0.0.1")!, port: 1 }, new Uint8Array(1))),
];
Bun.spawnSync(["ip", "link", "set", "dev", "b", "down"]);
report.down = told(() => receiver.receive());
for (const socket of [sender, receiver, ip, overA, linkLocal]) socket.close();
console.log(JSON.stringify(report));
