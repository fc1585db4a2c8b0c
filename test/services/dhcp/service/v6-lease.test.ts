/** An IPv6 lease on its link, in simulated time: what is sent, what the link gets, and when nothing is open. */
import { expect, test } from "bun:test";
import { EADDRNOTAVAIL, SyscallError } from "../../../../src/ffi/errno.ts";
import { another } from "../../../support/dhcp6-simulation.ts";
import { dualStack, SimulatedAttachment } from "../../../support/dhcp/simulated-attachment.ts";
import { server6 } from "../../../support/dhcp/simulated-frames.ts";
import { SimulatedLink } from "../../../support/dhcp/simulated-link.ts";

const onlyV6 = { ...dualStack, v4: false, required: ["ipv6"] as ["ipv6"] };
const TENTATIVE = 0x40, DUPLICATE = 0x08;
const prepared = ["disable_ipv6 = 0", "accept_ra = 2"], checked = "accept_dad = 1";

test("a lease from ADD to DEL: recorded before it is told, limited when the address appears, renewed, given back", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, onlyV6);
  // The prefix is the plugin's that made the link; the lifetimes are ours.
  expect(it.bind(["fd00:77::50/64"], [])).toEqual([
    ...prepared,
    checked,
    "SOLICIT from fe80::7 to everybody",
    "REQUEST from fe80::7 to everybody",
    "journal: written durably",
    "c1 has a lease",
    "addresses are watched: groups 5 and 9",
    "ADD gets fd00:77::50",
    "address fd00:77::50/64 for 999 s, preferred for 599 s",
    "addresses are not watched",
  ]);
  expect([link.open, link.handles]).toEqual([0, 0]);
  expect(it.passToRenewal()).toEqual([
    checked,
    "RENEW from fe80::7 to everybody",
    "journal: written",
    "address fd00:77::50/64 for 1000 s, preferred for 600 s",
    "c1 has a lease",
  ]);
  expect([link.open, link.handles]).toEqual([0, 0]);
  expect(it.kept!.v6).toMatchObject({ linkLocal: "fe800000000000000000000000000007", since: it.now });
  it.attachment.release();
  // The link is about to go: nobody waits for an answer.
  expect(link.news()).toEqual(["journal: to be released", "RELEASE from fe80::7 to everybody", "journal: removed"]);
  expect([link.open, link.handles]).toEqual([0, 0]);
});

test("a release is sent once, also right after another message", () => {
  for (const seconds of [0, 5]) {
    using link = new SimulatedLink();
    link.answer6 = server6();
    const it = new SimulatedAttachment(link, onlyV6);
    it.bind(["fd00:77::50/64"], []);
    it.passToRenewal();
    it.pass(seconds);
    it.attachment.release();
    expect(link.news().filter((one) => one.startsWith("RELEASE"))).toEqual(["RELEASE from fe80::7 to everybody"]);
  }
});

test("a renewal without an answer closes its socket after four seconds; the lease ends with its address", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, onlyV6);
  it.bind(["fd00:77::50/128"], []);
  link.answer6 = () => [];
  it.passToRenewal();
  expect([link.open, link.handles, it.attachment.fds.length, it.attachment.due - it.now]).toEqual([1, 1, 1, 4]);
  it.pass(4);
  expect([link.open, link.handles]).toEqual([0, 0]);
  it.pass(1999 - it.now);
  link.news();
  expect(it.pass(1).slice(0, 2)).toEqual(["no address fd00:77::50/128", "journal: written"]);
  // The next SOLICIT is half a second away.
  expect([link.open, link.handles]).toEqual([0, 0]);
  expect(it.kept!.v6).toMatchObject({ lease: { address: "fd00:77::50", valid: 1, preferred: 1 }, since: 0 });
  expect(link.log.at(-1)).toBe("c1/net/eth0: the lease has expired");
  link.answer6 = server6();
  expect(it.pass(4000)).toContain("address fd00:77::50/128 for 1000 s, preferred for 600 s");
});

test("routes of the configuration go at the end of the lease, and come with the next one", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, { ...onlyV6, routes: [{ dst: "fd00:9::/64", gw: "fd00:77::1" }] });
  const route = "fd00:9::/64 via fd00:77::1", metric = "metric 1024";
  it.bind(["fd00:77::50/128"], [route]);
  const isRoute = (one: string) => one.includes("route ");
  expect(it.passToRenewal().filter(isRoute)).toEqual([]);
  link.answer6 = () => [];
  expect(it.pass(2000).filter(isRoute)).toEqual([`no route ${route} ${metric}`]);
  link.answer6 = server6();
  expect(it.pass(4000).filter(isRoute)).toEqual([`route ${route} ${metric}`]);
});

test("onExpiry keep leaves the address; another one comes beside it, and a renewal that moves takes the old one away", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const kept = new SimulatedAttachment(link, { ...onlyV6, onExpiry: "keep" });
  kept.bind(["fd00:77::50/128"], []);
  link.answer6 = () => [];
  expect(kept.pass(1000).filter((one) => one.includes("fd00"))).toEqual([]);

  link.answer6 = server6();
  const it = new SimulatedAttachment(link, onlyV6);
  it.bind(["fd00:77::50/128"], []);
  link.answer6 = server6({ addresses: [{ address: another }] });
  expect(it.passToRenewal().slice(2)).toEqual([
    "journal: written durably",
    "address fd00:77::51/128 for 1000 s, preferred for 600 s",
    "no address fd00:77::50/128",
    "c1 has a lease",
  ]);
});

test.each([[TENTATIVE], [DUPLICATE]])(
  "with flags %i the link's own address is none: looked at soon while ADD waits",
  (flags) => {
    using link = new SimulatedLink();
    link.answer6 = server6();
    link.netlink.addresses.set("fe80::7/64", flags);
    Object.assign(link.link, { up: false });
    const it = new SimulatedAttachment(link, onlyV6);
    it.begin();
    // Its own address comes from the hardware address, so it need not be checked.
    expect(it.pass(0.2)).toEqual([...prepared, "accept_dad = 0", "link up"]);
    expect(it.attachment.v6!.obstacle).toBe(
      "IPv6: bind simulated0 has no link-local address yet: cannot assign requested address",
    );
    expect(it.attachment.due - it.now).toBeCloseTo(0.05, 5);
    link.netlink.addresses.set("fe80::7/64", 0);
    expect(it.pass(0.05).slice(0, 2)).toEqual([checked, "SOLICIT from fe80::7 to everybody"]);
    expect(it.attachment.v6!.obstacle).toBe("IPv6: no server has answered");
  },
);

test("a link that has lost its own address is looked at each second while nobody waits", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, onlyV6);
  it.bind(["fd00:77::50/128"], []);
  link.netlink.addresses.delete("fe80::7/64");
  it.passToRenewal();
  expect(it.attachment.due - it.now).toBe(1);
  expect(it.pass(2.5)).toEqual([]);
  link.netlink.addresses.set("fe80::9/64", 0);
  expect(it.pass(1)).toContain("RENEW from fe80::9 to everybody");
  // What the container does later does not matter to whom the lease is given back.
  expect(it.kept!.v6!.linkLocal).toBe("fe800000000000000000000000000007");
});

test("while an address is probed and nobody waits, the service sleeps until the next probe", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, { ...onlyV6, probe: "full" });
  it.bind(["fd00:77::50/128"], []);
  it.pass(10);
  link.answer6 = server6({ addresses: [{ address: another }] });
  it.passToRenewal();
  // The probes take half a second longer than the socket would be open without them.
  it.pass(4.2);
  expect([it.attachment.due - it.now, link.open]).toEqual([expect.closeTo(0.3, 5), 2]);
  expect(it.pass(0.4)).toContain("address fd00:77::51/128 for 995 s, preferred for 595 s");
});

test("a link that goes down while an address is probed is asked again when it is up", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, { ...onlyV6, probe: "full" });
  it.begin();
  it.pass(1);
  link.broken = new SyscallError("sendto", EADDRNOTAVAIL, "AF_PACKET");
  it.pass(1);
  expect([link.open, link.handles]).toEqual([0, 0]);
  link.broken = undefined;
  expect(it.pass(20)).toContain("ADD gets fd00:77::50");
});

test("an address that another host has is declined", () => {
  using link = new SimulatedLink();
  link.answer6 = server6();
  link.rivals.add("fd00:77::50");
  const it = new SimulatedAttachment(link, { ...onlyV6, probe: "fast" });
  it.begin(1);
  expect(it.pass(1).slice(-6)).toEqual([
    "who has fd00:77::50",
    "DECLINE from fe80::7 to everybody",
    "ADD fails: no more tries: IPv6: another host has fd00:77::50, which server 00030001020000000001 gave, waited 1 s",
    "net has none: IPv6: another host has fd00:77::50, which server 00030001020000000001 gave",
    "journal: to be released",
    "journal: removed",
  ]);
});
