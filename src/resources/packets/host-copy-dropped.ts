/**
 * On the userspace datapath of Open vSwitch, ovs-vswitchd reads a copy of each frame from the host's end of the pair. The kernel
 * still processes the frame itself: it would answer and forward, whatever the VLAN. So a rule drops it, in a table of our own
 * (owned-table.ts). It is there before the link and goes after it. On the kernel's datapath it drops what comes while the end
 * is no port.
 *
 *     table inet patchbay_ovs {
 *       counter dropped { }
 *       map links { type ifname : counter; elements = { "veth1a2b" comment "id: …, if: eth0, net: …" : "dropped" } }
 *       chain prerouting {
 *         type filter hook prerouting priority -450; policy accept;
 *         counter name iifname map @links drop
 *       }
 *     }
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Host } from "../../contract/host.ts";
import type { Owner } from "../../contract/owner.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { drop } from "../../ffi/netlink/nftables/action.ts";
import { commitUnchanged, hasNfTables } from "../../ffi/netlink/nftables/batch.ts";
import { countIn } from "../../ffi/netlink/nftables/compare.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { inputLink } from "../../ffi/netlink/nftables/packet-match.ts";
import { createElement, getElement, linkNameKey, linkNameOf, type NftSet } from "../../ffi/netlink/nftables/set.ts";
import { type Chain, nameOfTable } from "../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_INET_PRE_ROUTING } from "../../ffi/netlink/uapi/nf-tables.ts";
import { lacksNfTables, netfilterOf } from "./shared/netfilter-socket.ts";
import { ownTables } from "./shared/own-tables.ts";
import { OwnedTable } from "./shared/owned-table.ts";
import { ownerComment } from "./shared/owner-comment.ts";

interface HostCopyDroppedSpec extends Owner {
  /** The link of the host; "" when it is not known. */
  link: string;
  /** The switch is in the kernel and takes the packets itself. A kernel without nf_tables does without the rule. */
  isKernelDatapath?: boolean;
}

const table = ownTables["host-copy-dropped"];
const prerouting: Chain = { table, name: "prerouting" };
const links: NftSet = { table, name: "links" };
const DROPPED = "dropped";
/** NF_IP_PRI_RAW_BEFORE_DEFRAG of linux/netfilter_ipv4.h: fragments would wait for one another first. */
const BEFORE_FRAGMENTS = -450;

const owned = new OwnedTable({
  table,
  chains: [{
    chain: prerouting,
    hook: { type: "filter", hook: NF_INET_PRE_ROUTING, priority: BEFORE_FRAGMENTS },
    rules: [[inputLink, countIn(links.name), drop]],
    replaces: () => true,
  }],
  sets: [{ set: links, key: linkNameKey, holds: "counters" }],
  counter: DROPPED,
});

/** For a link that no switch of the kernel has: whether it is a port of a switch that is a process. */
export function isHostCopyDropped(link: string, host: Host): boolean {
  const netfilter = netfilterOf(host);
  return netfilter !== undefined && getElement(netfilter, links, linkNameOf(link)) !== undefined;
}

function planApply(socket: NetlinkSocket, spec: HostCopyDroppedSpec): NftMessage[] {
  const element = { key: linkNameOf(spec.link), comment: ownerComment(spec), counter: DROPPED };
  if (owned.counterUse(socket, DROPPED) === undefined) return [...owned.frame(), createElement(links, element)];
  // An element that is there is a former link's of this name.
  return owned.put(socket, links, element);
}

function planRepair(socket: NetlinkSocket, spec: HostCopyDroppedSpec): NftMessage[] {
  const isThere = owned.counterUse(socket, DROPPED) !== undefined;
  return [...isThere ? owned.mend(socket) : [], ...planApply(socket, spec)];
}

export const hostCopyDroppedKind: ResourceKind<HostCopyDroppedSpec> = {
  kind: "host-copy-dropped",
  confines: true,
  apply(spec, host) {
    const netfilter = netfilterOf(host);
    try {
      if (netfilter !== undefined && commitUnchanged(netfilter, () => planApply(netfilter, spec))) return;
    } catch (error) {
      undoUnlessRefused(error, () => hostCopyDroppedKind.remove(spec, host));
      throw error;
    }
    if (!spec.isKernelDatapath) throw lacksNfTables("a bridge of Open vSwitch with a userspace datapath needs");
  },
  verify(spec, host) {
    if (spec.link === "" || spec.isKernelDatapath && !hasTables(host)) return [];
    const { netfilter } = host;
    const found: string[] = [];
    if (getElement(netfilter, links, linkNameOf(spec.link))?.comment !== ownerComment(spec)) {
      found.push(`${spec.link} is not in map links of table ${owned.name}`);
    }
    return [...found, ...owned.verifyRules(netfilter)];
  },
  repair(spec, { netfilter }) {
    commitUnchanged(netfilter, () => planRepair(netfilter, spec));
  },
  ...owned.removal(({ link }: HostCopyDroppedSpec) => [{ set: links, key: linkNameOf(link) }], () => [links]),
  ownTable: () => nameOfTable(table),
  describe: ({ link, isKernelDatapath }) =>
    `packets from ${link} are dropped on the host; Open vSwitch ${isKernelDatapath ? "takes them" : "has its copy"}`,
};

function hasTables(host: Host): boolean {
  const netfilter = netfilterOf(host);
  return netfilter !== undefined && hasNfTables(netfilter);
}

export const hostCopyDropped = resource(hostCopyDroppedKind);
