/**
 * The kernel keeps isolated ports of a bridge apart, but not what one of them sends to another by way of the host: the
 * gateway, or any address that is the bridge's. So a chain at the host's link on the network drops what the host would send
 * back by that link, in a table of our own. What is bridged never comes there, also with br_netfilter; what is for a
 * published port is for the host.
 *
 *     table netdev patchbay_isolation {
 *       counter on_br0 { }
 *       map members { type mark . mark : counter; elements = { 0x… . 0x… comment "id: …, if: eth0, net: …" : "on_br0" } }
 *       chain on_br0 {
 *         type filter hook ingress device "br0" priority filter; policy accept;
 *         ether type 8021q vlan id 0 vlan type 8021q drop                  # and three more, with the other type of tag
 *         fib daddr oifname "br0" fib daddr type unicast drop
 *       }
 *     }
 *
 * The kernel removes a chain with its link.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import type { Owner } from "../../contract/owner.ts";
import { ENOENT, EOPNOTSUPP } from "../../ffi/errno.ts";
import { drop } from "../../ffi/netlink/nftables/action.ts";
import { commitUnchanged, hasNfTables } from "../../ffi/netlink/nftables/batch.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { taggedBehindVlan0, wouldLeaveBy } from "../../ffi/netlink/nftables/packet-match.ts";
import { linkNameOf } from "../../ffi/netlink/nftables/set.ts";
import { addBaseChain, type Chain, createCounter, nameOfTable } from "../../ffi/netlink/nftables/table.ts";
import { isNetlinkError, type NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_NETDEV_INGRESS } from "../../ffi/netlink/uapi/nf-tables.ts";
import { warn } from "../../process/warn.ts";
import { counterOn, memberIn, membersIn } from "./shared/link-members.ts";
import { netfilterOf } from "./shared/netfilter-socket.ts";
import { hasRules, mendRules, type OwnRules } from "./shared/own-rules.ts";
import { ownTables } from "./shared/own-tables.ts";
import { OwnedTable } from "./shared/owned-table.ts";
import { ownerComment } from "./shared/owner-comment.ts";

interface PortIsolationSpec extends Owner {
  /** The host's link on the network. */
  link: string;
}

const table = ownTables["port-isolation"];
const members = membersIn(table);
/** The chain and the counter of a link have one name. */
const chainNamed = (name: string): Chain => ({ table, name });
const owned = new OwnedTable({ table, chains: [], sets: [members], groups: { chain: chainNamed } });

function rulesFor(link: string): OwnRules {
  const rules = [...taggedBehindVlan0, wouldLeaveBy(linkNameOf(link))].map((matches) => [...matches, drop]);
  return { chain: chainNamed(counterOn(link)), rules, replaces: () => true };
}

function planApply(socket: NetlinkSocket, spec: PortIsolationSpec): NftMessage[] {
  const counter = counterOn(spec.link), rules = rulesFor(spec.link);
  return [
    ...owned.exists(socket) ? [] : owned.frame(),
    ...owned.counterUse(socket, counter) === undefined ? [createCounter(table, counter)] : [],
    addBaseChain(rules.chain, { type: "filter", hook: NF_NETDEV_INGRESS, priority: 0, device: spec.link }),
    ...mendRules(socket, rules),
    ...owned.move(socket, [memberIn(table, spec)], { comment: ownerComment(spec), counter }),
  ];
}

export const portIsolationKind: ResourceKind<PortIsolationSpec> = {
  kind: "port-isolation",
  confines: true,
  apply(spec, host) {
    const socket = netfilterOf(host);
    let why = "no nf_tables";
    try {
      if (socket !== undefined && commitUnchanged(socket, () => planApply(socket, spec))) return;
    } catch (error) {
      undoUnlessRefused(error, () => portIsolationKind.remove(spec, host));
      if (!isNetlinkError(error, ENOENT) && !isNetlinkError(error, EOPNOTSUPP)) throw error;
      why = `no way to write table ${nameOfTable(table)} (${error.message})`;
    }
    warn(`"portIsolation": this kernel has ${why}: neighbours on ${spec.link} reach each other through the host`);
  },
  /** The reference plugin has nothing of it. */
  verify(spec, host, isRestated) {
    const socket = netfilterOf(host);
    if (isRestated || socket === undefined || !hasNfTables(socket)) return [];
    const where = `the container in map ${members.set.name} of table ${owned.name}`, rules = rulesFor(spec.link);
    const { set, key } = memberIn(table, spec), counter = counterOn(spec.link);
    return [
      ...owned.verifyElement(socket, set, { key, comment: ownerComment(spec), counter }, where),
      ...hasRules(socket, rules) ? [] : [`chain ${rules.chain.name} of table ${owned.name} is missing or altered`],
    ];
  },
  repair: (spec, host) => portIsolationKind.apply(spec, host),
  ...owned.removal((owner) => [memberIn(table, owner)], () => [members.set]),
  ownTable: () => nameOfTable(table),
  describe: ({ link }) => `what comes by ${link} does not leave by it`,
};

export const portIsolation = resource(portIsolationKind);
