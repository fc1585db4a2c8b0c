/** Words for the numbers that the kernel has for links, addresses, routes and queues, as ip(8) and tc(8) say them. */
import { NETLINK_ROUTE } from "../../ffi/netlink/socket.ts";
import type { LinkAddress } from "../../ffi/netlink/route/address.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import type { KernelRoute } from "../../ffi/netlink/route/route.ts";
import { listFilters, listQdiscs } from "../../ffi/netlink/tc/queueing.ts";
import type { TcObject } from "../../ffi/netlink/tc/tc-object.ts";
import {
  TC_H_FOR_EGRESS,
  TC_H_FOR_INGRESS,
  TC_H_INGRESS,
  TC_H_ROOT,
} from "../../ffi/netlink/uapi/traffic-control.ts";
import { formatPrefix } from "../../net/address.ts";
import { linkAt } from "../facts.ts";
import type { Reading } from "../reading.ts";

type Names = Record<number, string>;

/** enum rtn_type */
const TYPES: Names = {
  ...[
    "unspec",
    "unicast",
    "local",
    "broadcast",
    "anycast",
    "multicast",
    "blackhole",
    "unreachable",
    "prohibit",
    "throw",
  ],
};
const SCOPES: Names = { 0: "global", 200: "site", 253: "link", 254: "host", 255: "nowhere" };
const PROTOCOLS: Names = { 1: "redirect", 2: "kernel", 3: "boot", 4: "static", 9: "ra", 16: "dhcp", 186: "bgp" };
const TABLES: Names = { 253: "default", 254: "main", 255: "local" };
/** RFC 2863, as `operstate` has them. */
const STATES: Names = { ...["unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"] };
const FLAGS: Names = {
  0x1: "UP",
  0x2: "BROADCAST",
  0x8: "LOOPBACK",
  0x10: "POINTOPOINT",
  0x40: "RUNNING",
  0x80: "NOARP",
  0x100: "PROMISC",
  0x200: "ALLMULTI",
  0x400: "MASTER",
  0x800: "SLAVE",
  0x1000: "MULTICAST",
  0x10000: "LOWER_UP",
};

/** A number without a word stays. */
const worded = (names: Names, number: number | undefined) =>
  number === undefined ? undefined : names[number] ?? number;
const nameOf = (facts: Reading, index: number) => linkAt(facts, index)?.name;

export function linkWords(link: Link): object {
  const flags = Object.entries(FLAGS).filter(([bit]) => (link.flags & Number(bit)) !== 0).map(([, name]) => name);
  return { ...link, flags, operstate: worded(STATES, link.operstate) };
}

export function addressWords(facts: Reading, { bytes, bits, ...address }: LinkAddress): object {
  const { linkIndex, scope } = address;
  return {
    address: formatPrefix({ bytes, bits }),
    link: nameOf(facts, linkIndex),
    ...address,
    scope: worded(SCOPES, scope),
  };
}

export function routeWords(facts: Reading, { dst, hops, ...route }: KernelRoute): object {
  return {
    dst: formatPrefix(dst),
    link: nameOf(facts, route.oif),
    ...route,
    hops: hops?.map(({ oif, gateway, flags }) => ({ link: nameOf(facts, oif), oif, gateway, flags })),
    type: worded(TYPES, route.type),
    scope: worded(SCOPES, route.scope),
    protocol: worded(PROTOCOLS, route.protocol),
    table: worded(TABLES, route.table),
  };
}

const PLACES: Names = {
  [TC_H_ROOT]: "root",
  [TC_H_INGRESS]: "ingress",
  [TC_H_FOR_INGRESS]: "clsact ingress",
  [TC_H_FOR_EGRESS]: "clsact egress",
};
const PATTERNED = ["ingress", "clsact"];

function placeText(handle: number): string {
  return PLACES[handle] ?? `${(handle >>> 16).toString(16)}:${(handle & 0xffff).toString(16)}`;
}

function wordsOf(facts: Reading, { linkIndex, kind, handle, parent }: TcObject) {
  return { link: nameOf(facts, linkIndex), linkIndex, kind, handle: placeText(handle), parent: placeText(parent) };
}

export function qdiscWords(facts: Reading): object[] {
  return facts.ask(NETLINK_ROUTE, listQdiscs).map((one) => wordsOf(facts, one));
}

const MOST_QDISCS = 200;

/** Filters below what is not there by itself. What they look for is not decoded. */
export function filterWords(facts: Reading): object[] {
  return facts.ask(
    NETLINK_ROUTE,
    (socket) =>
      listQdiscs(socket).filter(({ handle }) => handle !== 0).slice(0, MOST_QDISCS).flatMap((qdisc) => {
        const link = linkAt(facts, qdisc.linkIndex);
        const parents = PATTERNED.includes(qdisc.kind) ? [TC_H_FOR_INGRESS, TC_H_FOR_EGRESS] : [qdisc.handle];
        const filters = link === undefined ? [] : parents.flatMap((parent) => listFilters(socket, link, parent));
        // The first entry of a list stands for all of it.
        return filters.filter(({ handle }) => handle !== 0).map(({ priority, protocol, handle, ...filter }) => ({
          ...wordsOf(facts, { handle, ...filter }),
          handle: `0x${handle.toString(16)}`,
          priority,
          protocol: `0x${protocol.toString(16).padStart(4, "0")}`,
        }));
      }),
  );
}
