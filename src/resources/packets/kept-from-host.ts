/**
 * What comes in by a link belongs to a switch that is a process (the userspace datapath of Open vSwitch), which gets a copy.
 * The kernel goes on with the frame as with any other of the link: the host would answer, and forward, whatever VLAN the switch
 * has put the container in. So it is dropped there, in a table of our own (owned-table.ts), and the host has no address on it.
 *
 *     table inet patchbay_ovs {
 *       counter kept { }
 *       map links { type ifname : counter; elements = { "veth1a2b" comment "id: …, if: eth0, net: …" : "kept" } }
 *       chain prerouting {
 *         type filter hook prerouting priority raw; policy accept;
 *         counter name iifname map @links drop
 *       }
 *     }
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Host } from "../../contract/host.ts";
import type { Owner } from "../../contract/owner.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { drop } from "../../ffi/netlink/nftables/action.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { countIn } from "../../ffi/netlink/nftables/compare.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { inputLink } from "../../ffi/netlink/nftables/packet-match.ts";
import { createElement, delElement, getElement, linkNameKey, type NftSet } from "../../ffi/netlink/nftables/set.ts";
import { type Chain, nameOf } from "../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_INET_PRE_ROUTING } from "../../ffi/netlink/uapi/nf-tables.ts";
import { utf8 } from "../../ffi/libc.ts";
import { readSysctl, tryWriteSysctl } from "../../ffi/sysctl.ts";
import { lacksNfTables, netfilterOf } from "./shared/netfilter-socket.ts";
import { type FoundElement, ownTables } from "./shared/own-tables.ts";
import { OwnedTable } from "./shared/owned-table.ts";
import { isLost, ownerComment } from "./shared/owner-comment.ts";

interface KeptFromHostSpec extends Owner {
  /** Of the host; "" when it is not known. */
  link: string;
}

const table = ownTables["kept-from-host"];
const prerouting: Chain = { table, name: "prerouting" };
const links: NftSet = { table, name: "links" };
const KEPT = "kept";
/** Before connection tracking, which these packets are no part of. */
const RAW = -300;

const owned = new OwnedTable({
  table,
  chains: [{
    chain: prerouting,
    hook: { type: "filter", hook: NF_INET_PRE_ROUTING, priority: RAW },
    rules: { chain: prerouting, rules: [[inputLink, countIn(links.name), drop]], replaces: () => true },
  }],
  sets: [{ set: links, key: linkNameKey, holds: "counters" }],
  counter: KEPT,
});

/** Whether a switch that is a process has the link. */
export function isKeptFromHost(link: string, host: Host): boolean {
  const netfilter = netfilterOf(host);
  return netfilter !== undefined && getElement(netfilter, links, keyOf({ link })) !== undefined;
}

/** The host's addresses are not told to the container, and the link gets none of its own. */
const silence = (link: string): [key: string, value: string][] => [
  [`net/ipv4/conf/${link}/arp_ignore`, "8"],
  [`net/ipv6/conf/${link}/disable_ipv6`, "1"],
];

function keyOf({ link }: Pick<KeptFromHostSpec, "link">): Uint8Array {
  const key = new Uint8Array(linkNameKey.length);
  key.set(utf8(link));
  return key;
}

function planElement(socket: NetlinkSocket, spec: KeptFromHostSpec): NftMessage[] {
  // An element that is there is a former link's of this name.
  const isStale = getElement(socket, links, keyOf(spec)) !== undefined;
  return [
    ...isStale ? [delElement(links, keyOf(spec))] : [],
    createElement(links, { key: keyOf(spec), comment: ownerComment(spec), counter: KEPT }),
  ];
}

function planApply(socket: NetlinkSocket, spec: KeptFromHostSpec): NftMessage[] {
  if (owned.counterUse(socket, KEPT) !== undefined) return planElement(socket, spec);
  return [...owned.frame(), createElement(links, { key: keyOf(spec), comment: ownerComment(spec), counter: KEPT })];
}

function planRepair(socket: NetlinkSocket, spec: KeptFromHostSpec): NftMessage[] {
  if (owned.counterUse(socket, KEPT) === undefined) return planApply(socket, spec);
  return [...owned.mend(socket), ...planElement(socket, spec)];
}

function planRemovalOf(socket: NetlinkSocket, elements: readonly FoundElement[]): NftMessage[] {
  return elements.length === 0 ? [] : owned.planRemoval(socket, elements, owned.unusedWithout(socket, elements));
}

function planRemoval(socket: NetlinkSocket, spec: KeptFromHostSpec): NftMessage[] {
  const owner = ownerComment(spec);
  const elements = spec.link === ""
    ? owned.findWhere(socket, [links], (comment) => comment === owner)
    : owned.find(socket, [{ set: links, key: keyOf(spec) }], owner);
  return planRemovalOf(socket, elements);
}

export const keptFromHostKind: ResourceKind<KeptFromHostSpec> = {
  kind: "kept-from-host",
  unmade: undefined,
  apply(spec, host) {
    for (const [key, value] of silence(spec.link)) tryWriteSysctl(key, value);
    try {
      if (commitUnchanged(host.netfilter, () => planApply(host.netfilter, spec))) return;
    } catch (error) {
      undoUnlessRefused(error, () => keptFromHostKind.remove(spec, host));
      throw error;
    }
    throw lacksNfTables("keeping the containers of a userspace datapath away from the host needs");
  },
  verify(spec, { netfilter }) {
    if (spec.link === "") return [];
    const found: string[] = [];
    if (getElement(netfilter, links, keyOf(spec))?.comment !== ownerComment(spec)) {
      found.push(`${spec.link} is not in map links of table ${owned.name}`);
    }
    for (const [key, value] of silence(spec.link)) {
      const current = readSysctl(key);
      if (current !== undefined && current !== value) {
        found.push(`${key.replaceAll("/", ".")} is ${current}, not ${value}`);
      }
    }
    return [...found, ...owned.verifyRules(netfilter)];
  },
  repair(spec, { netfilter }) {
    for (const [key, value] of silence(spec.link)) tryWriteSysctl(key, value);
    commitUnchanged(netfilter, () => planRepair(netfilter, spec));
  },
  remove(spec, host) {
    const netfilter = netfilterOf(host);
    if (netfilter !== undefined) commitUnchanged(netfilter, () => planRemoval(netfilter, spec));
  },
  sweep(network, isValid, host) {
    const netfilter = netfilterOf(host);
    if (netfilter === undefined) return;
    const isSwept = (comment: string) => isLost(comment, network, isValid);
    commitUnchanged(netfilter, () => planRemovalOf(netfilter, owned.findWhere(netfilter, [links], isSwept)));
  },
  ownTable: () => nameOf(table),
  describe: ({ link }) => `what comes by ${link} is the switch's, and not the host's`,
};

export const keptFromHost = resource(keptFromHostKind);
