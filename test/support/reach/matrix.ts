/**
 * Who reaches whom: what docs/who-reaches-whom.md says, and what test/kernel/who-reaches-whom.test.ts sends packets for. A
 * table of the page is a kind of network; a column is a policy or a kind, a row is one or several ways.
 *
 * Places: `a` and `b` are containers of one network, `s` is in another network on its bridge or master, `v` in another
 * VLAN there, `c` in a network apart of the same kind and policy, and `n` in an ordinary network without a policy. The
 * network of `x` has IPv4 alone, that of `y` IPv6 alone. `b:port` is a port of the host that leads to `b`, asked for at
 * the host's address towards the world, and `b:loopback` the same at 127.0.0.1 or ::1.
 */
import type { Feature } from "../kernel-features.ts";

export type Family = 4 | 6;
export const families: readonly Family[] = [4, 6];

/**
 * `yes`: answered by TCP, UDP and SCTP. `one way`: that is not answered, but a datagram arrives from a container that
 * sends by ways of its own. `no`: not even that arrives.
 */
export type Cell = "yes" | "one way" | "no" | "not tested";

/** Who asks whom; without families, in both. */
export type Way = readonly [from: string, to: string, ...families: Family[]];

export interface Row {
  from: string;
  to: string;
  ways: readonly Way[];
  /** One for each column. */
  cells: readonly Cell[];
}

interface Column {
  /** As the configuration says it. */
  name: string;
  needs: readonly Feature[];
}

export interface Table {
  /** Its heading on the page. */
  name: string;
  columns: readonly Column[];
  rows: readonly Row[];
  /** The table of the same networks without br_netfilter: here the host's rules are asked about what stays on a bridge, too. */
  unasked?: Table;
}

type Subject = Omit<Row, "cells">;

const container = "a container", published = "a published port";

const subject = (from: string, to: string, ...ways: Way[]): Subject => ({ from, to, ways });

const neighbour = subject(container, "one of its network", ["a", "b"], ["b", "a"]);
const onItsBridge = subject(container, "one of another network on its bridge", ["a", "s"], ["s", "a"]);
const inAnotherVlan = subject(container, "one of another VLAN of its bridge", ["a", "v"], ["v", "a"]);
const apart = subject(container, "one of another network", ["a", "c"], ["c", "a"]);
const ordinary = subject(container, "one of a network without a policy, and back", ["a", "n"], ["n", "a"]);
const only4 = "a container of IPv4 alone, by IPv6,", only6 = "a container of IPv6 alone, by IPv4,";
const only4Apart = subject(only4, apart.to, ["x", "c", 6]);
const only6Apart = subject(only6, apart.to, ["y", "c", 4]);
const only4Outside = subject(only4, "the outside", ["x", "out", 6]);
const only6Outside = subject(only6, "the outside", ["y", "out", 4]);
const portOfNeighbour = subject(container, `${published} of one of its network`, ["a", "b:port"]);
const ownPort = subject(container, `${published} of its own`, ["a", "a:port"]);
const portApart = subject(container, `${published} of one of another network`, ["a", "c:port"], ["c", "a:port"]);
const toHost = subject(container, "the host", ["a", "host"]);
const toOutside = subject(container, "the outside", ["a", "out"]);
const fromOutside = subject("the outside", container, ["out", "a"]);
const outsideToPort = subject("the outside", published, ["out", "a:port"]);
const fromHost = subject("the host", container, ["host", "a"]);
const hostToPort = subject("the host", `${published}, by its own address`, ["host", "a:port"]);
const hostToLoopback = subject("the host", `${published}, by 127.0.0.1`, ["host", "a:loopback", 4]);
const hostToLoopback6 = subject("the host", `${published}, by ::1`, ["host", "a:loopback", 6]);

const row = (subject: Subject, ...cells: Cell[]): Row => ({ ...subject, cells });

/** What no policy changes. */
const always = [
  row(toHost, "yes", "yes", "yes"),
  row(toOutside, "yes", "yes", "yes"),
  row(only4Outside, "one way", "one way", "one way"),
  row(only6Outside, "one way", "one way", "one way"),
  row(fromOutside, "yes", "yes", "yes"),
  row(outsideToPort, "yes", "yes", "yes"),
  row(fromHost, "yes", "yes", "yes"),
  row(hostToPort, "yes", "yes", "yes"),
  row(hostToLoopback, "yes", "yes", "yes"),
  row(hostToLoopback6, "no", "no", "no"),
];
const networksApart = [
  row(apart, "yes", "no", "no"),
  row(only4Apart, "one way", "no", "no"),
  row(only6Apart, "one way", "no", "no"),
  row(ordinary, "yes", "yes", "yes"),
  row(portApart, "yes", "no", "no"),
];

/** The page has them once, for all tables that have all of them. */
export const commonRows = [...networksApart, ...always];

/** Values of `ingressPolicy`. */
export const policies = ["open", "same-bridge", "isolated"] as const;

const byPolicy = (...needs: Feature[]): Column[] => policies.map((name) => ({ name, needs }));

const bridge: Table = {
  name: "bridge",
  columns: byPolicy(),
  rows: [
    row(neighbour, "yes", "yes", "yes"),
    row(onItsBridge, "yes", "yes", "one way"),
    ...networksApart,
    row(portOfNeighbour, "yes", "yes", "no"),
    row(ownPort, "yes", "yes", "no"),
    ...always,
  ],
};

const bridgedAsked: Table = {
  name: "bridge with br_netfilter",
  unasked: bridge,
  columns: byPolicy(),
  rows: [
    row(neighbour, "yes", "yes", "one way"),
    row(onItsBridge, "yes", "yes", "one way"),
    ...networksApart,
    row(portOfNeighbour, "yes", "yes", "no"),
    row(ownPort, "one way", "one way", "no"),
    ...always,
  ],
};

const bridgeWithVlan: Table = {
  name: "bridge with vlan",
  columns: byPolicy("bridge VLAN filtering", "VLAN links"),
  rows: [
    row(neighbour, "yes", "yes", "yes"),
    row(onItsBridge, "yes", "yes", "one way"),
    row(inAnotherVlan, "yes", "no", "no"),
    ...networksApart,
    row(portOfNeighbour, "yes", "yes", "no"),
    row(ownPort, "yes", "yes", "no"),
    ...always,
  ],
};

const bridgeWithPortIsolation: Table = {
  name: "bridge with portIsolation",
  columns: byPolicy("isolated bridge ports"),
  rows: [
    row(neighbour, "no", "no", "no"),
    row(onItsBridge, "no", "no", "no"),
    ...networksApart,
    row(portOfNeighbour, "yes", "yes", "no"),
    row(ownPort, "yes", "yes", "no"),
    ...always,
  ],
};

const isolatedAsked: Table = {
  name: "bridge with portIsolation and br_netfilter",
  unasked: bridgeWithPortIsolation,
  columns: byPolicy("isolated bridge ports"),
  rows: [
    row(neighbour, "no", "no", "no"),
    row(onItsBridge, "no", "no", "no"),
    row(portOfNeighbour, "one way", "one way", "no"),
    row(ownPort, "one way", "one way", "no"),
    row(toHost, "yes", "yes", "yes"),
    row(fromHost, "yes", "yes", "yes"),
  ],
};

const ptp: Table = {
  name: "ptp",
  columns: byPolicy(),
  rows: [
    row(neighbour, "yes", "no", "no"),
    ...networksApart,
    row(portOfNeighbour, "yes", "no", "no"),
    row(ownPort, "yes", "yes", "no"),
    ...always,
  ],
};

const onBridgeOfHost = "one on a bridge of the host's";

const outsideBothWays: Subject = {
  ...toOutside,
  to: "the outside, and back",
  ways: [["a", "out"], ["out", "a"]],
};

/** Behind these there is no ingress policy. */
export const beside: Table = {
  name: "macvlan, ipvlan, vlan and ovs",
  columns: [
    { name: "macvlan", needs: ["macvlan links"] },
    { name: "ipvlan", needs: ["ipvlan links"] },
    { name: "vlan", needs: ["VLAN links"] },
    { name: "ovs", needs: [] },
    { name: "ovs, kernel datapath", needs: ["Open vSwitch's datapath"] },
  ],
  rows: [
    row(neighbour, "yes", "yes", "not tested", "yes", "yes"),
    row(
      { ...onItsBridge, to: "one of another network on its master or bridge" },
      "one way",
      "one way",
      "not tested",
      "one way",
      "one way",
    ),
    row({ ...inAnotherVlan, to: "one of another VLAN there" }, "not tested", "not tested", "no", "no", "no"),
    row({ ...ordinary, to: onBridgeOfHost, ways: [["a", "n"]] }, "no", "one way", "no", "no", "no"),
    row({ ...ordinary, from: onBridgeOfHost, to: container, ways: [["n", "a"]] }, "no", "no", "no", "no", "no"),
    row(toHost, "no", "one way", "no", "no", "no"),
    row(fromHost, "no", "no", "no", "no", "no"),
    row(outsideBothWays, "yes", "yes", "yes", "no", "no"),
    row(portOfNeighbour, "not tested", "not tested", "not tested", "not tested", "not tested"),
    row(outsideToPort, "not tested", "not tested", "not tested", "not tested", "not tested"),
  ],
};

const notIsolated = "one of a network with isolate=false";

const podman: Table = {
  name: "podman's bridges",
  columns: ["isolate=false", "isolate=true", "isolate=strict", "internal"].map((name) => ({ name, needs: [] })),
  rows: [
    row(neighbour, "yes", "yes", "yes", "yes"),
    row(apart, "yes", "no", "no", "no"),
    row({ ...ordinary, to: notIsolated, ways: [["a", "n"]] }, "yes", "yes", "no", "no"),
    row({ ...ordinary, from: notIsolated, to: container, ways: [["n", "a"]] }, "yes", "yes", "one way", "no"),
    row(only4Apart, "one way", "no", "no", "no"),
    row(only6Apart, "no", "no", "no", "no"),
    row(toHost, "yes", "yes", "yes", "yes"),
    row(toOutside, "yes", "yes", "yes", "no"),
    row(only4Outside, "one way", "one way", "one way", "no"),
    row(only6Outside, "no", "no", "no", "no"),
    row(portOfNeighbour, "yes", "yes", "yes", "no"),
    row(ownPort, "yes", "yes", "yes", "no"),
    row(portApart, "yes", "yes", "yes", "no"),
    row(fromOutside, "yes", "yes", "yes", "no"),
    row(outsideToPort, "yes", "yes", "yes", "no"),
    row(fromHost, "yes", "yes", "yes", "yes"),
    row(hostToPort, "yes", "yes", "yes", "no"),
    row(hostToLoopback, "yes", "yes", "yes", "no"),
    row(hostToLoopback6, "no", "no", "no", "no"),
  ],
};

export const tables: readonly Table[] = [
  bridge,
  bridgedAsked,
  bridgeWithVlan,
  bridgeWithPortIsolation,
  isolatedAsked,
  ptp,
  beside,
  podman,
];
