/** What a namespace has, as files of a report: a JSON document a line, because names of others may have anything in them. */
import { listNeighbours } from "../../ffi/netlink/route/neighbour.ts";
import { listRoutes } from "../../ffi/netlink/route/route.ts";
import { listRoutingRules } from "../../ffi/netlink/route/rule.ts";
import { NETLINK_ROUTE, type NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { RT_TABLE_UNSPEC } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { AF_BRIDGE, AF_INET, AF_INET6 } from "../../ffi/socket/socket.ts";
import { sysctlName } from "../../ffi/sysctl.ts";
import { formatAddress } from "../../net/address.ts";
import { linkAt } from "../facts.ts";
import type { Reading } from "../reading.ts";
import { boundedLines } from "./bounded-lines.ts";
import { addressWords, filterWords, linkWords, qdiscWords, routeWords } from "./link-words.ts";
import type { ReportFile } from "./report.ts";
import { rulesText } from "./rules-text.ts";

/** `place`: the directory in the report. `known`: as for `redactedText`. */
export function namespaceFiles(place: string, facts: Reading, known: readonly string[]): ReportFile[] {
  const ask = <T extends object>(question: (socket: NetlinkSocket) => T[]) => () =>
    lines(facts.ask(NETLINK_ROUTE, question));
  const listening = (protocol: number) =>
    ([4, 6] as const).flatMap((family) => facts.listening(family, protocol).map((one) => ({ protocol, ...one })));
  const inBoth = <T extends object>(list: (family: number) => T[]) => [AF_INET, AF_INET6].flatMap(list);
  const routesOf = (one: NetlinkSocket) => (family: number) => listRoutes(one, family, RT_TABLE_UNSPEC);
  const ports = () => facts.links().filter(({ master }) => linkAt(facts, master ?? 0)?.vlanFiltering).slice(0, 200);
  return [
    [`${place}/links.jsonl`, () => lines(facts.links().map(linkWords))],
    [`${place}/addresses.jsonl`, () => lines(facts.addresses().map((one) => addressWords(facts, one)))],
    [`${place}/routes.jsonl`, ask((one) => inBoth(routesOf(one)).map((route) => routeWords(facts, route)))],
    [`${place}/routing-rules.jsonl`, ask((one) => listRoutingRules(one, 0))],
    [`${place}/neighbours.jsonl`, ask((one) => inBoth((family) => listNeighbours(one, family)))],
    [`${place}/bridge-fdb.jsonl`, ask((one) => listNeighbours(one, AF_BRIDGE))],
    [
      `${place}/bridge-vlans.jsonl`,
      () => lines(ports().map((one) => ({ port: one.name, vlans: facts.vlansOf(one) }))),
    ],
    [`${place}/qdiscs.jsonl`, () => lines(qdiscWords(facts))],
    [`${place}/tc-filters.jsonl`, () => lines(filterWords(facts))],
    [`${place}/listening.jsonl`, () => lines([6, 17].flatMap(listening))],
    [`${place}/sysctls.txt`, () => sysctls(facts)],
    [`${place}/rules.txt`, () => rulesText(facts, known)],
  ];
}

function lines(all: readonly object[]): string {
  const shown = (key: string, value: unknown) => {
    const isAddress = value instanceof Uint8Array && [4, 16].includes(value.length) && key !== "kindData";
    return isAddress ? formatAddress(value) : value instanceof Uint8Array ? undefined : value;
  };
  return boundedLines(all, (one) => JSON.stringify(one, shown));
}

const SYSCTLS = [
  ..."ip_forward ip_local_port_range neigh/default/gc_thresh3".split(" ").map((key) => `ipv4/${key}`),
  ..."netfilter/nf_conntrack_count netfilter/nf_conntrack_max ipv6/neigh/default/gc_thresh3".split(" "),
  ..."iptables ip6tables arptables".split(" ").map((key) => `bridge/bridge-nf-call-${key}`),
];
const OF_LINKS = {
  ipv4: "forwarding rp_filter accept_local route_localnet arp_ignore arp_filter proxy_arp".split(" "),
  ipv6: "forwarding disable_ipv6 accept_ra proxy_ndp".split(" "),
};

function sysctls(facts: Reading): string {
  const links = ["all", "default", ...facts.links().slice(0, 200).map(({ name }) => name)];
  const ofLinks = Object.entries(OF_LINKS).flatMap(([family, keys]) =>
    links.flatMap((link) => keys.map((key) => `${family}/conf/${link}/${key}`))
  );
  return [...SYSCTLS, ...ofLinks].map((key) => `net/${key}`).map((key) => {
    const value = facts.sysctl(key);
    return value === undefined ? "" : `${sysctlName(key)} = ${value}\n`;
  }).join("");
}
