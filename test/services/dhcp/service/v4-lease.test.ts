/** An IPv4 lease on its link, in simulated time: what is sent, what the link gets, and when nothing is open. */
import { expect, test } from "bun:test";
import { decodeRequest, encodeReply } from "../../../support/dhcp/other-side.ts";
import { EADDRNOTAVAIL, SyscallError } from "../../../../src/ffi/errno.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { SimulatedAttachment } from "../../../support/dhcp/simulated-attachment.ts";
import { SERVER_MAC, SimulatedLink } from "../../../support/dhcp/simulated-link.ts";

const script = { address: "192.168.77.50", leaseSeconds: 1000 },
  silence = { ...script, rules: { any: { silent: true } } };
const moved = { ...script, address: "192.168.77.60" };
const lend = "address 192.168.77.50/24 for 1000 s, broadcast 192.168.77.255";
const newLease = [
  "DISCOVER to everybody",
  "REQUEST to everybody",
  "journal: written durably",
  "address 192.168.77.60/24 for 1000 s, broadcast 192.168.77.255",
  "route 0.0.0.0/0 via 192.168.77.1",
  "192.168.77.60 is here",
  "c1 has a lease",
];

test("a lease from ADD to DEL: recorded before it is told, limited when the address appears, renewed, given back", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  expect(it.bind()).toEqual([
    "DISCOVER to everybody",
    "REQUEST to everybody",
    "journal: written durably",
    "c1 has a lease",
    "addresses are watched: groups 5 and 9",
    "ADD gets 192.168.77.50/24",
    // A second has passed.
    "address 192.168.77.50/24 for 999 s, broadcast 192.168.77.255",
    "addresses are not watched",
  ]);
  expect([link.open, link.handles]).toEqual([0, 0]);
  expect(it.passToRenewal()).toEqual([
    "REQUEST from 192.168.77.50 to 192.168.77.1",
    "journal: written",
    lend,
    "c1 has a lease",
  ]);
  expect([link.open, link.handles]).toEqual([0, 0]);
  it.attachment.release();
  expect(link.news()).toEqual([
    "journal: to be released",
    `RELEASE from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`,
    "journal: removed",
  ]);
  expect([link.open, link.handles]).toEqual([0, 0]);
});

test("sockets are open for as long as an answer is awaited: ADD's for ever, a renewal's for four seconds", () => {
  using link = new SimulatedLink(silence);
  const adding = new SimulatedAttachment(link);
  adding.begin();
  adding.pass(50);
  expect([link.open, link.handles]).toEqual([1, 1]);
  adding.attachment.close();
  expect([link.open, link.handles]).toEqual([0, 0]);

  link.script(script);
  const it = new SimulatedAttachment(link);
  it.bind();
  link.script(silence);
  it.passToRenewal();
  // One for packets, one through which the kernel finds the server.
  expect([link.open, link.handles, it.attachment.fds.length, it.attachment.due - it.now]).toEqual([2, 1, 1, 4]);
  it.pass(3.9);
  expect(link.open).toBe(2);
  it.pass(0.1);
  expect([link.open, link.handles, it.attachment.fds]).toEqual([0, 0, []]);
  // The kernel is trusted with the first message only.
  const again = it.passToRenewal();
  expect(again).toEqual([`REQUEST from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`]);
});

test("what a renewal changes is changed on the link, and nothing else", () => {
  const options = (mtu: number, ...routes: [string, string][]) => ({
    ...script,
    options: { 26: value.u16(mtu), 121: value.routes(...routes) },
  });
  using link = new SimulatedLink(options(1400, ["10.1.0.0/16", "192.168.77.1"], ["10.2.0.0/16", "0.0.0.0"]));
  const it = new SimulatedAttachment(link, { priority: 7 });
  const added = it.bind(["192.168.77.50/24"], ["10.1.0.0/16 via 192.168.77.1", "10.2.0.0/16"]);
  expect(added.filter((one) => one.startsWith("MTU"))).toEqual(["MTU 1400"]);
  const changed = options(1300, ["10.1.0.0/16", "192.168.77.1"], ["10.3.0.0/16", "192.168.77.1"]);
  link.script({ ...changed, options: { ...changed.options, 28: value.addresses("192.168.77.127") } });
  expect(it.passToRenewal().slice(2)).toEqual([
    "MTU 1300",
    "no route 10.2.0.0/16 metric 7 scope 253",
    "address 192.168.77.50/24 for 1000 s, broadcast 192.168.77.127",
    "route 10.3.0.0/16 via 192.168.77.1 metric 7",
    "c1 has a lease",
  ]);
});

test("routes of the configuration are the next service's, too: no server's is in their place, and they come again", () => {
  using link = new SimulatedLink(script);
  const routes = [{ dst: "10.1.0.0/16", gw: "192.168.77.4" }, { dst: "10.2.0.0/16" }];
  const own = ["10.1.0.0/16 via 192.168.77.4", "10.2.0.0/16 via 192.168.77.1"];
  const before = new SimulatedAttachment(link, { routes });
  before.bind(undefined, ["0.0.0.0/0 via 192.168.77.1", ...own]);
  const it = new SimulatedAttachment(link);
  it.kept = before.kept;
  it.now = before.now;
  it.resume();
  link.script({ ...script, options: { 121: value.routes(["10.1.0.0/16", "192.168.77.1"]) } });
  const isRoute = (one: string) => one.includes("route ");
  expect(it.passToRenewal().filter(isRoute)).toEqual(["no route 0.0.0.0/0 via 192.168.77.1"]);
  link.netlink.addresses.delete("192.168.77.50/24");
  link.netlink.routes.clear();
  expect(it.passToRenewal().filter(isRoute)).toEqual(own.map((one) => `route ${one}`));
  link.script(silence);
  expect(it.pass(2000).filter(isRoute)).toEqual(own.map((one) => `no route ${one}`));
  link.script(script);
  expect(it.pass(60).filter(isRoute)).toEqual(
    ["0.0.0.0/0 via 192.168.77.1", ...own].map((one) => `route ${one}`),
  );
});

test.each(
  [
    ["remove", ["no route 0.0.0.0/0 via 192.168.77.1", "no address 192.168.77.50/24", "journal: written"], newLease],
    ["down", [
      "no route 0.0.0.0/0 via 192.168.77.1",
      "no address 192.168.77.50/24",
      "link down",
      "journal: written",
    ], newLease],
    // What is kept goes when there is something else, which is for ever, too.
    ["keep", ["journal: written"], [
      ...newLease.slice(0, 3),
      "no route 0.0.0.0/0 via 192.168.77.1",
      "no address 192.168.77.50/24",
      "address 192.168.77.60/24 for ever, broadcast 192.168.77.255",
      ...newLease.slice(4),
    ]],
  ] as const,
)("onExpiry: %s", (onExpiry, atTheEnd, later) => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, { onExpiry });
  it.bind();
  link.script(silence);
  it.pass(2000 - it.now - 0.01);
  link.news();
  expect(it.pass(0.01)).toEqual([...atTheEnd, "DISCOVER to everybody"]);
  expect(it.kept!.v4).toMatchObject({
    lease: { address: "192.168.77.50/24", lease: 1, renew: 1, rebind: 1 },
    since: 0,
  });
  expect(link.log.at(-1)).toBe("c1/net/eth0: the lease has expired");
  link.script(moved);
  expect(it.pass(10)).toEqual([...later]);
  expect(it.kept!.v4).toMatchObject({ lease: { address: "192.168.77.60/24", lease: 1000 } });
});

test("what the server takes back goes at once, even where expired leases are kept", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, { onExpiry: "keep" });
  it.bind();
  link.script({ ...moved, rules: { RENEW: { nak: "moved" } } });
  expect(it.passToRenewal().slice(1, 4)).toEqual([
    "no route 0.0.0.0/0 via 192.168.77.1",
    "no address 192.168.77.50/24",
    "journal: written",
  ]);
  expect(link.log.find((one) => one.includes("NAK"))).toBe(
    "c1/net/eth0: server 192.168.77.1 refused (NAK): moved",
  );
});

test("an address that somebody has removed is there again before the renewal, with what is left of its time", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.bind();
  link.netlink.addresses.delete("192.168.77.50/24");
  link.netlink.routes.clear();
  const renewed = it.passToRenewal(), left = Math.floor(2000 - it.now);
  expect(renewed.slice(0, 3)).toEqual([
    `address 192.168.77.50/24 for ${left} s, broadcast 192.168.77.255`,
    "route 0.0.0.0/0 via 192.168.77.1",
    "REQUEST from 192.168.77.50 to 192.168.77.1",
  ]);
});

test("an address that nobody has given the link yet is nobody's to renew: the plugin that makes the link is late", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.begin();
  it.pass(11);
  expect(it.passToRenewal()[0]).toBe(`REQUEST from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`);
});

test("a lease whose link is gone lasts to its end, and then nobody holds it", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.bind();
  link.gone = "no such link";
  expect(it.pass(990)).toEqual([]);
  expect(it.attachment.v4!.obstacle).toBe("no such link");
  expect(it.pass(10)).toEqual(["journal: written", "journal: removed"]);
  expect(it.isOver).toBe(true);
});

test("an address that another host has is declined, ADD says whose it is, and nothing stays", () => {
  using link = new SimulatedLink(script);
  link.rivals.add("192.168.77.50");
  const it = new SimulatedAttachment(link, { probe: "fast" });
  it.begin(15);
  const round = ["DISCOVER to everybody", "REQUEST to everybody", "who has 192.168.77.50", "DECLINE to everybody"];
  expect(it.pass(9)).toEqual(round);
  const obstacle = "another host has 192.168.77.50, which server 192.168.77.1 gave";
  expect(it.pass(6)).toEqual([
    ...round,
    `ADD fails: no more tries: ${obstacle}, waited 15 s`,
    `net has none: ${obstacle}`,
    "journal: to be released",
    "journal: removed",
  ]);
  expect([it.isOver, link.open, link.handles]).toEqual([true, 0, 0]);
});

test.each([["none", 0, 0], ["fast", 1, 0.05], ["full", 3, 4.5]] as const)(
  "acd %s: so many probes, and so long for each",
  (probe, count, seconds) => {
    using link = new SimulatedLink(script);
    const it = new SimulatedAttachment(link, { probe });
    it.begin();
    const sent = it.pass(seconds - 0.01);
    expect(sent.filter((one) => one.startsWith("who has")).length).toBe(count);
    if (count > 0) expect([it.attachment.fds.length, sent.includes("ADD gets 192.168.77.50/24")]).toEqual([2, false]);
    expect([...sent, ...it.pass(0.02)]).toContain("ADD gets 192.168.77.50/24");
  },
);

test("a link that goes down while it is asked: ADD says so, and goes on when it is up again", () => {
  using link = new SimulatedLink(script);
  const down = new SyscallError("sendto", EADDRNOTAVAIL, "AF_PACKET");
  link.broken = down;
  const it = new SimulatedAttachment(link);
  it.begin(3);
  it.pass(1);
  expect([it.attachment.v4!.obstacle, link.open, link.handles]).toEqual([down.message, 0, 0]);
  link.broken = undefined;
  expect(it.pass(1)).toContain("ADD gets 192.168.77.50/24");
  expect(it.attachment.v4!.obstacle).not.toBe(down.message);
});

test.each([
  [[], [], true],
  [["192.168.77.1"], [], true],
  [["192.168.77.2"], [], false],
  [[], ["192.168.77.1"], false],
  [["192.168.77.1"], ["192.168.77.1"], false],
])("servers %j, denied %j: believed: %p", (servers, denied, isBelieved) => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, { servers, denied });
  it.begin();
  expect(it.pass(1).includes("ADD gets 192.168.77.50/24")).toBe(isBelieved);
  expect(link.log.includes("c1/net/eth0: server 192.168.77.1 is not allowed")).toBe(!isBelieved);
});

test("what the link does not take is told, and the lease stays", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.bind();
  link.netlink.failure = new Error("operation not permitted");
  expect(it.passToRenewal()).toContain("c1 has a lease");
  expect(link.log).toContain("c1/net/eth0: operation not permitted");
  link.gone = "no such link";
  const { lease } = it.attachment.v4!.client;
  expect([it.passToRenewal(), it.attachment.v4!.client.lease]).toEqual([[], lease]);
});

test("a flood of answers is read in turns and to an end; the next message is heard again", () => {
  using link = new SimulatedLink(silence);
  const it = new SimulatedAttachment(link);
  it.begin();
  const asked = decodeRequest(link.packets.at(-1)!.bytes.subarray(28))!;
  // Nothing in them is an offer.
  const answer = encodeReply({ ...asked, clientAddress: undefined, options: new Map() });
  for (let count = 0; count < 300; count++) link.arrive4(answer, `02:00:00:00:00:${10 + count % 30}`);
  expect(link.queued).toBe(300);
  it.attachment.wake(it.now);
  expect([link.queued, link.open]).toEqual([292, 1]);
  for (let turn = 0; turn < 31; turn++) it.attachment.wake(it.now);
  expect([link.open, it.attachment.fds]).toEqual([0, []]);
  expect(link.log.at(-1)).toBe(
    "c1/net/eth0: too many answers to one message: none is read until the next message",
  );
  link.script(script);
  expect(it.pass(1)).toContain("ADD gets 192.168.77.50/24");
});
