/** What of a link's traffic costs the service anything: answers to its last message, and no more of them than servers send. */
import { expect, test } from "bun:test";
import { NetnsHandle } from "../../../../src/services/dhcp/link/netns-handle.ts";
import { Replies } from "../../../../src/services/dhcp/link/replies.ts";
import { Sockets } from "../../../../src/services/dhcp/link/sockets.ts";
import { Sockets6 } from "../../../../src/services/dhcp/link/sockets6.ts";
import { discover } from "../../../../src/services/dhcp/v4/lease/request.ts";
import { encodeRequest } from "../../../../src/services/dhcp/v4/message/message.ts";
import { encodeReply } from "../../../support/dhcp/other-side.ts";
import { ETH_P_IP } from "../../../../src/ffi/socket/packet.ts";
import { ADVERTISE, decode, encode, REPLY } from "../../../../src/services/dhcp/v6/message/message.ts";
import { solicit } from "../../../../src/services/dhcp/v6/lease/request.ts";
import { parseMac } from "../../../../src/net/mac.ts";
import { duid, iaid, said } from "../../../support/dhcp6-simulation.ts";
import { keeps } from "../../../support/dhcp/simulated-sockets.ts";
import { MAC, SERVER_MAC, SimulatedLink } from "../../../support/dhcp/simulated-link.ts";
import type { FilterRule } from "../../../../src/ffi/socket/filter.ts";

const handle = () => NetnsHandle.open({ netnsPath: "", ifName: "" });
const mac = parseMac(MAC)!, xid = 0x01020304;
const asked = discover({ mac, wanted: [], provided: new Map(), broadcast: false }, { xid, secs: 0 });
const reply = (change = {}) =>
  encodeReply({ xid, secs: 0, broadcast: false, mac, options: new Map([[53, Uint8Array.of(2)]]), ...change });

test("of one sender 32 answers are read, of all 256; others are heard while one is silenced", () => {
  let filters: (readonly FilterRule[])[] = [];
  const answers = [{ keeps: true, when: [] }];
  const replies = new Replies({ setFilter: (rules) => void filters.push(rules) }, answers, 0);
  const frame = (sender: Uint8Array) => ({ link: new Uint8Array(), ip: new Uint8Array(), data: sender });
  const senders = Array.from({ length: 9 }, (_, index) => Uint8Array.of(1, 2, 3, 4, 5, index));
  const [one, other] = senders as [Uint8Array, Uint8Array];
  for (let count = 1; count <= 31; count++) expect(replies.admits(one)).toBe(true);
  expect(filters.length).toBe(1);
  expect([replies.admits(one), filters.length]).toEqual([true, 2]);
  expect([one, other].map((sender) => keeps(filters.at(-1)!, frame(sender)))).toEqual([false, true]);
  // What was there before is not read either, and counts for nothing.
  for (let count = 0; count < 300; count++) expect(replies.admits(one)).toBe(false);
  expect([replies.isSpent, replies.admits(other)]).toEqual([false, true]);
  filters = [];
  for (const sender of senders.slice(1)) {
    for (let count = 0; count < 32 && !replies.isSpent; count++) replies.admits(sender);
  }
  expect(replies.isSpent).toBe(true);
  // 31 more of the second, and 32 of each but the last, which makes 256.
  expect(filters.length).toBe(7);
  expect(senders.map((sender) => keeps(filters.at(-1)!, frame(sender)))).toEqual([...Array(8).fill(false), true]);
});

test.each<[string, Uint8Array, isKept: boolean]>([
  ["an answer", reply(), true],
  ["for another client", reply({ mac: parseMac(SERVER_MAC) }), false],
  ["of another exchange", reply({ xid: xid + 1 }), false],
  ["another client's question", encodeRequest({ xid, secs: 0, broadcast: false, mac, options: new Map() }), false],
  ["without the cookie", reply().fill(0, 236, 240), false],
])("DHCPv4: %s", (_what, bytes, isKept) => {
  using link = new SimulatedLink();
  const sockets = new Sockets(handle(), undefined);
  link.arrive4(reply());
  expect(link.ready().size).toBe(0);
  sockets.broadcast(asked);
  link.arrive4(bytes);
  expect(link.ready().size).toBe(isKept ? 1 : 0);
  if (isKept) expect(sockets.receive()).toMatchObject({ from: parseMac(SERVER_MAC)!, message: { xid } });
  expect(sockets.receive()).toBeUndefined();
});

test.each([
  ["a fragment", 6, 0x20],
  ["a later fragment", 7, 1],
  ["TCP", 9, 6],
  ["of another port", 21, 68],
  ["to another port", 23, 67],
])("DHCPv4: %s is dropped by the kernel", (_what, at, byte) => {
  using link = new SimulatedLink();
  const sockets = new Sockets(handle(), undefined);
  sockets.broadcast(asked);
  link.arrive4(reply());
  const packet = Uint8Array.of(0x46, ...new Uint8Array(331));
  packet[9] = 17;
  packet.set([0, 67, 0, 68], 24);
  packet.set(reply(), 32);
  // The header of IP may be longer.
  link.arrive(ETH_P_IP, packet);
  expect(link.ready().size).toBe(1);
  const wrong = packet.slice();
  wrong[at! < 20 ? at : at + 4] = byte;
  sockets.receive();
  sockets.receive();
  link.arrive(ETH_P_IP, wrong);
  expect(link.ready().size).toBe(0);
});

test("DHCPv4: an answer to the message before is not for the next one, though the kernel let it pass", () => {
  using link = new SimulatedLink();
  const sockets = new Sockets(handle(), undefined);
  sockets.broadcast(asked);
  link.arrive4(reply());
  sockets.broadcast(discover({ mac, wanted: [], provided: new Map(), broadcast: false }, { xid: 9, secs: 0 }));
  expect(sockets.receive()).toEqual({ from: parseMac(SERVER_MAC)!, message: undefined });
  for (let count = 0; count < 300; count++) link.arrive4(reply({ xid: 9 }), `02:00:00:00:01:${10 + count % 50}`);
  for (let count = 0; count < 255; count++) {
    expect(sockets.isSpent).toBe(false);
    sockets.receive();
  }
  expect(sockets.isSpent).toBe(true);
});

test("DHCPv4: who has sent 32 answers is silenced by the kernel, by its hardware address", () => {
  using link = new SimulatedLink();
  const sockets = new Sockets(handle(), undefined);
  sockets.broadcast(asked);
  for (let count = 0; count < 32; count++) link.arrive4(reply());
  while (sockets.receive() !== undefined);
  link.arrive4(reply());
  expect(link.queued).toBe(0);
  link.arrive4(reply(), "02:00:00:00:00:02");
  expect(link.queued).toBe(1);
});

test("DHCPv4: each way to send listens to the answers", () => {
  using link = new SimulatedLink();
  const address = Uint8Array.of(192, 168, 77, 50),
    server = Uint8Array.of(192, 168, 77, 1),
    at = parseMac(SERVER_MAC)!;
  link.netlink.addresses.set("192.168.77.50/24", 0);
  for (
    const send of [
      (sockets: Sockets) => sockets.broadcast(asked),
      (sockets: Sockets) => sockets.unicast(asked, server, at),
      (sockets: Sockets) => sockets.unicastAtOnce(asked, server, at),
    ]
  ) {
    const sockets = new Sockets(handle(), address);
    send(sockets);
    link.arrive4(reply());
    expect(sockets.receive()!.message).toMatchObject({ xid });
    sockets.close();
  }
});

test("DHCPv4: who has the address sends from it, who has not sends from nobody", () => {
  using link = new SimulatedLink();
  const server = Uint8Array.of(192, 168, 77, 1),
    address = Uint8Array.of(192, 168, 77, 50),
    at = parseMac(SERVER_MAC)!;
  const nameless = new Sockets(handle(), undefined), absent = new Sockets(handle(), address);
  link.netlink.addresses.set("192.168.77.50/24", 0);
  const present = new Sockets(handle(), address);
  expect([nameless, absent, present].map((one) => one.hasOwnEnd)).toEqual([false, false, true]);
  for (const sockets of [nameless, absent, present]) {
    sockets.unicast(asked, server, at);
    sockets.unicastAtOnce(asked, server, at);
    sockets.close();
  }
  expect([link.open, link.news()]).toEqual([0, [
    ...Array(2).fill(`DISCOVER to 192.168.77.1 at ${SERVER_MAC}`),
    ...Array(2).fill(`DISCOVER from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`),
    "DISCOVER from 192.168.77.50 to 192.168.77.1",
    `DISCOVER from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`,
  ]]);
});

test("DHCPv6: of the messages of the exchange, ADVERTISE and REPLY are kept", () => {
  using link = new SimulatedLink();
  const sockets = new Sockets6(handle());
  const question = solicit({ duid, iaid }, { xid: 0x010203, elapsed: 0 });
  const message = decode(question)!, other = { ...message, xid: 0x010204 };
  link.arrive6(said(REPLY, message));
  expect([link.ready().size, sockets.receive()]).toEqual([0, undefined]);
  sockets.multicast(question);
  for (const wrong of [said(REPLY, other), said(1, message), said(10, message)]) link.arrive6(wrong);
  expect(link.ready().size).toBe(0);
  for (const type of [ADVERTISE, REPLY]) {
    link.arrive6(said(type, message));
    expect(encode(sockets.receive()!.message!)).toEqual(encode(said(type, message)));
    expect(sockets.receive()).toBeUndefined();
  }
  link.arrive6(said(REPLY, message));
  sockets.multicast(solicit({ duid, iaid }, { xid: 9, elapsed: 0 }));
  expect(sockets.receive()!.message).toBeUndefined();
  for (let count = 0; count < 33; count++) link.arrive6(said(REPLY, { ...message, xid: 9 }));
  const read = Array.from({ length: 33 }, () => sockets.receive()?.message).filter((one) => one !== undefined);
  // With the one before, 32 of this sender.
  expect([read.length, sockets.isSpent]).toEqual([31, false]);
  // Silenced by its address, which is in the header of IP.
  link.arrive6(said(REPLY, { ...message, xid: 9 }));
  expect(link.ready().size).toBe(0);
  link.arrive6(said(REPLY, { ...message, xid: 9 }), "fe80::2");
  expect(link.ready().size).toBe(1);
  sockets.close();
  expect(link.open).toBe(0);
});
