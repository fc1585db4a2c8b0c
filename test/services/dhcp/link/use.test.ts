/** What a lease does to its link: addresses, routes, MTU and lifetimes, of IPv4 and of IPv6. */
import { expect, test } from "bun:test";
import { offeredOf } from "../../../../src/services/dhcp/journal/lease-text.ts";
import type { LeaseOptions } from "../../../../src/services/dhcp/lease-options.ts";
import { NetnsHandle } from "../../../../src/services/dhcp/link/netns-handle.ts";
import { checkDuplicatesAgain, prepareForV6 } from "../../../../src/services/dhcp/link/sockets6.ts";
import { includesRoute, kernelRoutesOfLease } from "../../../../src/services/dhcp/link/kernel-routes.ts";
import { exchangeLease, lowerMtu, removeLeaseFromLink, setLifetime } from "../../../../src/services/dhcp/link/use.ts";
import { exchangeBinding, removeBinding, setLifetimes } from "../../../../src/services/dhcp/link/use6.ts";
import type { Offered } from "../../../../src/services/dhcp/v4/message/offer.ts";
import type { Binding } from "../../../../src/services/dhcp/v6/message/offer.ts";
import { EADDRNOTAVAIL } from "../../../../src/ffi/errno.ts";
import { NetlinkError } from "../../../../src/ffi/netlink/socket.ts";
import { usualOptions } from "../../../support/dhcp/lease-record.ts";
import { SimulatedLink } from "../../../support/dhcp/simulated-link.ts";
import { ip } from "../../../support/dhcp-simulation.ts";
import { ip6 } from "../../../support/dhcp6-simulation.ts";

const options = (change: Partial<LeaseOptions> = {}): LeaseOptions => ({ ...usualOptions, ...change });
const handle = () => NetnsHandle.open({ netnsPath: "", ifName: "" });

/** A lease with routes: "10.2.0.0/16 10.1.0.2". */
function leaseOf(address: string, routes: string[] = [], change: Partial<Offered> = {}): Offered {
  const given = routes.map((one) => one.split(" ")).map(([destination, gateway]) => ({
    destination: destination!,
    gateway,
  }));
  const times = { lease: 100, renew: 50, rebind: 80 },
    none = { routers: [], nameServers: [], search: [], timeServers: [] };
  const offered = offeredOf({ address, server: "10.1.0.1", isClassless: true, routes: given, ...none, ...times });
  return { ...offered, ...change };
}

const one = leaseOf("10.1.0.9/24", ["10.2.0.0/16", "10.3.0.0/16 10.1.0.2"]);
const setUp = ["10.1.0.9/24"], routes = ["10.2.0.0/16", "10.3.0.0/16 via 10.1.0.2"];

/** A link with what the lease brought. */
function linkWith(addresses = setUp, itsRoutes = routes): SimulatedLink {
  const link = new SimulatedLink();
  for (const address of addresses) link.netlink.addresses.set(address, 0);
  for (const route of itsRoutes) link.netlink.routes.add(route);
  return link;
}

test("the first lease: its address, its routes and an announcement", () => {
  using link = linkWith([], []);
  exchangeLease(handle(), { before: undefined, after: one, seconds: 99.9 }, options({ priority: 4 }));
  expect(link.news()).toEqual([
    "address 10.1.0.9/24 for 99 s, broadcast 10.1.0.255",
    "route 10.2.0.0/16 metric 4 scope 253",
    "route 10.3.0.0/16 via 10.1.0.2 metric 4",
    "10.1.0.9 is here",
  ]);
});

test.each([[1.9, "1 s"], [0.5, "1 s"], [-3, "1 s"], [2, "2 s"], [Infinity, "ever"]])(
  "an address that is lent for %d seconds lives for %s",
  (seconds, expected) => {
    using link = linkWith();
    expect(setLifetime(handle(), one, seconds)).toBe(true);
    expect(link.news()).toEqual([`address 10.1.0.9/24 for ${expected}, broadcast 10.1.0.255`]);
    link.netlink.addresses.clear();
    expect([setLifetime(handle(), one, seconds), link.news()]).toEqual([false, []]);
  },
);

test("an address keeps the prefix that another plugin has given it", () => {
  using link = linkWith(["10.1.0.8/24", "10.1.0.9/16"]);
  setLifetime(handle(), one, 50);
  expect(link.news()).toEqual(["address 10.1.0.9/16 for 50 s, broadcast 10.1.255.255"]);
});

test("a renewal with the same routes changes the lifetime only; with others, what differs", () => {
  using link = linkWith();
  exchangeLease(handle(), { before: one, after: one, seconds: 50 }, options());
  const lent = "address 10.1.0.9/24 for 50 s, broadcast 10.1.0.255";
  expect(link.news()).toEqual([lent]);
  const changed = leaseOf("10.1.0.9/24", ["10.2.0.0/16 10.1.0.3", "10.3.0.0/16 10.1.0.2", "10.4.0.0/16"]);
  exchangeLease(handle(), { before: one, after: changed, seconds: 50 }, options());
  expect(link.news()).toEqual([
    "no route 10.2.0.0/16 scope 253",
    lent,
    "route 10.4.0.0/16 scope 253",
    "route 10.2.0.0/16 via 10.1.0.3",
  ]);
});

test("a lease that moves: the old one goes first, with all its routes", () => {
  using link = linkWith();
  const after = leaseOf("10.1.0.8/24", ["10.3.0.0/16 10.1.0.2"]);
  exchangeLease(handle(), { before: one, after, seconds: 50 }, options());
  expect(link.news()).toEqual([
    "no route 10.2.0.0/16 scope 253",
    "no route 10.3.0.0/16 via 10.1.0.2",
    "no address 10.1.0.9/24",
    "address 10.1.0.8/24 for 50 s, broadcast 10.1.0.255",
    "route 10.3.0.0/16 via 10.1.0.2",
    "10.1.0.8 is here",
  ]);
});

test("an address that somebody has removed comes back with its routes; those that are there stay", () => {
  using link = linkWith([], [routes[1]!]);
  exchangeLease(handle(), { before: one, after: one, seconds: 50 }, options());
  expect(link.news()).toEqual([
    "address 10.1.0.9/24 for 50 s, broadcast 10.1.0.255",
    "route 10.2.0.0/16 scope 253",
    "route 10.3.0.0/16 via 10.1.0.2",
  ]);
  link.netlink.failure = new NetlinkError("RTM_NEWROUTE", EADDRNOTAVAIL);
  expect(() => exchangeLease(handle(), { before: undefined, after: one, seconds: 50 }, options())).toThrow(
    NetlinkError,
  );
});

test.each(
  [["remove", ["no address 10.1.0.9/24"]], ["down", ["no address 10.1.0.9/24", "link down"]], ["keep", []]] as const,
)(
  "at the end of a lease: %s",
  (how, rest) => {
    using link = linkWith();
    removeLeaseFromLink(handle(), one, how, options());
    const gone = ["no route 10.2.0.0/16 scope 253", "no route 10.3.0.0/16 via 10.1.0.2"];
    expect(link.news()).toEqual(how === "keep" ? [] : [...gone, ...rest]);
  },
);

test.each<
  [what: string, mtu: number | undefined, change: Partial<LeaseOptions>, addresses: string[], isSet: boolean]
>([
  ["none", undefined, {}, [], false],
  ["a smaller one", 1400, {}, [], true],
  ["the link's own", 1500, {}, [], false],
  ["a larger one", 9000, {}, [], false],
  ["one that is ignored", 1400, { ignored: ["mtu"] }, [], false],
  ["one that is too small for IPv6, without IPv6", 1279, {}, ["fe80::7/64"], true],
  ["one that is too small for IPv6, with an address of it", 1279, {}, ["fe80::7/64", "fd00::7/64"], false],
  ["one that is too small for IPv6, which is asked for", 1279, { v6: { duid: "", iaid: "" } }, [], false],
  ["one that is enough for IPv6", 1280, { v6: { duid: "", iaid: "" } }, ["fd00::7/64"], true],
])("an MTU, %s", (_what, mtu, change, addresses, isSet) => {
  using link = linkWith();
  link.netlink.addresses.clear();
  for (const address of addresses) link.netlink.addresses.set(address, 0);
  lowerMtu(handle(), leaseOf("10.1.0.9/24", [], { mtu }), options(change));
  expect(link.news()).toEqual(isSet ? [`MTU ${mtu}`] : []);
});

test("a link that is to speak IPv6: switched on, routers heard, and its own address not checked while it is down", () => {
  using link = new SimulatedLink();
  const usual = ["disable_ipv6 = 0", "accept_ra = 2"];
  prepareForV6(handle());
  expect(link.news()).toEqual(usual);
  Object.assign(link.link, { up: false });
  prepareForV6(handle());
  expect(link.news()).toEqual([...usual, "accept_dad = 0"]);
  checkDuplicatesAgain(handle());
  expect(link.news()).toEqual(["accept_dad = 1"]);
});

const binding = (address: string, change: Partial<Binding> = {}): Binding => ({
  address: ip6(address),
  ...{ preferred: 60, valid: 100, renew: 30, rebind: 48 },
  ...change,
});

test.each<[age: number, change: Partial<Binding>, expected: string]>([
  [0, {}, "for 100 s, preferred for 60 s"],
  [59.5, {}, "for 40 s, preferred for 0 s"],
  [98.5, {}, "for 1 s, preferred for 0 s"],
  [100, {}, "for 1 s, preferred for 0 s"],
  [50, { valid: Infinity, preferred: Infinity }, "for ever"],
])("an IPv6 address that is %d seconds old, %j, lives %s", (age, change, expected) => {
  using link = linkWith(["fd00::9/64"], []);
  expect(setLifetimes(handle(), binding("fd00::9", change), age)).toBe(true);
  expect(link.news()).toEqual([`address fd00::9/64 ${expected}`]);
  expect([setLifetimes(handle(), binding("fd00::8"), age), link.news()]).toEqual([false, []]);
});

test("an IPv6 lease: renewed where it is, put back where it is not, and moved", () => {
  using link = linkWith(["fd00::9/64"], []);
  const lent = (address: string) => `address ${address} for 100 s, preferred for 60 s`;
  const exchange = (before: string | undefined, after: string) => {
    const had = before === undefined ? undefined : binding(before);
    exchangeBinding(handle(), { before: had, after: binding(after), age: 0 }, options());
    return link.news();
  };
  expect(exchange("fd00::9", "fd00::9")).toEqual([lent("fd00::9/64")]);
  link.netlink.addresses.clear();
  expect(exchange("fd00::9", "fd00::9")).toEqual([lent("fd00::9/128")]);
  expect(exchange("fd00::9", "fd00::8")).toEqual([lent("fd00::8/128"), "no address fd00::9/128"]);
  link.netlink.addresses.clear();
  expect(exchange(undefined, "fd00::8")).toEqual([lent("fd00::8/128")]);
  for (
    const [onExpiry, told] of [["keep", []], ["remove", ["no address fd00::8/128"]], ["down", [
      "no address fd00::8/128",
    ]]] as const
  ) {
    link.netlink.addresses.set("fd00::8/128", 0);
    removeBinding(handle(), binding("fd00::8"), options({ onExpiry }));
    expect(link.news()).toEqual([...told]);
  }
});

const own = [{ dst: "10.2.0.0/16", gw: "10.1.0.4", priority: 3 }, { dst: "10.9.0.0/16", table: 7, mtu: 1400 }];

test("routes of the configuration come and go with the lease, and stay when a renewal changes the server's", () => {
  using link = linkWith([], []);
  const router = { routers: [ip("10.1.0.1")] }, before = leaseOf("10.1.0.9/24", ["10.2.0.0/16 10.1.0.2"], router);
  exchangeLease(handle(), { before: undefined, after: before, seconds: 99 }, options({ routes: own }));
  const lent = "address 10.1.0.9/24 for 99 s, broadcast 10.1.0.255";
  const added = ["route 10.2.0.0/16 via 10.1.0.4 metric 3", "route 10.9.0.0/16 via 10.1.0.1"];
  expect(link.news()).toEqual([lent, ...added, "10.1.0.9 is here"]);
  const after = leaseOf("10.1.0.9/24", ["10.2.0.0/16 10.1.0.3", "10.3.0.0/16 10.1.0.3"], router);
  exchangeLease(handle(), { before, after, seconds: 99 }, options({ routes: own }));
  expect(link.news()).toEqual([lent, "route 10.3.0.0/16 via 10.1.0.3"]);
  // What goes through the router follows it.
  const moved = { ...after, routers: [ip("10.1.0.8")] };
  exchangeLease(handle(), { before: after, after: moved, seconds: 99 }, options({ routes: own }));
  expect(link.news()).toEqual(["no route 10.9.0.0/16 via 10.1.0.1", lent, "route 10.9.0.0/16 via 10.1.0.8"]);
  removeLeaseFromLink(handle(), moved, "remove", options({ routes: own }));
  expect(link.news()).toEqual([
    "no route 10.3.0.0/16 via 10.1.0.3",
    "no route 10.2.0.0/16 via 10.1.0.4 metric 3",
    "no route 10.9.0.0/16 via 10.1.0.8",
    "no address 10.1.0.9/24",
  ]);
});

test("routes that differ in metric or table alone are different ones", () => {
  const texts = [{ priority: 1 }, { priority: 2 }, { priority: 2, table: 7 }];
  const found = kernelRoutesOfLease(texts.map((one) => ({ dst: "10.9.0.0/16", gw: "10.1.0.4", ...one })), 7);
  for (const route of found) {
    expect(found.filter((other) => includesRoute([other], route))).toEqual([route]);
  }
});

test("a route that the kernel refuses keeps no other from being added", () => {
  using link = linkWith([], []);
  link.netlink.unreachable = "10.1.0.4";
  const routes = [own[0]!, { dst: "10.8.0.0/16", gw: "10.1.0.5", mtu: 1400 }];
  const exchange = () => exchangeLease(handle(), { before: undefined, after: one, seconds: 9 }, options({ routes }));
  expect(exchange).toThrow("network is unreachable");
  expect(link.news().slice(2)).toEqual([
    "route 10.2.0.0/16 via 10.1.0.4 metric 3",
    "route 10.8.0.0/16 via 10.1.0.5",
    "10.1.0.9 is here",
  ]);
});

test("routes of IPv6 come with the address, with the metric that the kernel would give them, and go with it", () => {
  using link = linkWith([], []);
  const six = options({ routes: [...own, { dst: "fd00:9::/64", gw: "fe80::1", priority: 3 }, { dst: "fd00::/64" }] });
  const lent = (address: string) => `address ${address} for 100 s, preferred for 60 s`;
  const exchange = (before: string | undefined, after: string) => {
    const had = before === undefined ? undefined : binding(before);
    exchangeBinding(handle(), { before: had, after: binding(after), age: 0 }, six);
    return link.news();
  };
  const added = ["route fd00::/64 metric 1024 scope 0", "route fd00:9::/64 via fe80::1 metric 3"];
  expect(exchange(undefined, "fd00::9")).toEqual([lent("fd00::9/128"), ...added]);
  expect(exchange("fd00::9", "fd00::9")).toEqual([lent("fd00::9/128")]);
  link.netlink.addresses.clear();
  link.netlink.routes.clear();
  expect(exchange("fd00::9", "fd00::9")).toEqual([lent("fd00::9/128"), ...added]);
  removeBinding(handle(), binding("fd00::9"), { ...six, onExpiry: "keep" });
  expect(link.news()).toEqual([]);
  removeBinding(handle(), binding("fd00::9"), six);
  expect(link.news()).toEqual([
    "no route fd00::/64 metric 1024 scope 255",
    "no route fd00:9::/64 via fe80::1 metric 3",
    "no address fd00::9/128",
  ]);
});
