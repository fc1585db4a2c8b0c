/**
 * Frames from a container pass only with the MAC address it was given (`macspoofchk` of bridge), in a table of our own, see
 * owned-table.ts. One rule drops for all containers; each adds an element to a map and one to a set.
 *
 *     table bridge patchbay_macspoofchk {
 *       counter spoofed { }
 *       map guarded { type ifname : counter; elements = { "veth1a2b" comment "id: …, if: eth0" : "spoofed" } }
 *       set allowed { type ifname . ether_addr; elements = { "veth1a2b" . 02:00:00:00:00:05 comment … } }
 *       chain prerouting {
 *         type filter hook prerouting priority -300; policy accept;
 *         iifname . ether saddr @allowed accept
 *         counter name iifname map @guarded drop
 *       }
 *     }
 *
 * The reference plugin writes two chains a container into `table bridge nat`. They are removed here, never written.
 */
import type { Host } from "../../contract/host.ts";
import { NO_OWNER } from "../../contract/owner.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoUnlessRefused } from "../../contract/undo-unless-refused.ts";
import { type Chain, chainUse, delChain, nameOfTable } from "../../ffi/netlink/nftables/table.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { accept, drop } from "../../ffi/netlink/nftables/action.ts";
import { countIn, isIn } from "../../ffi/netlink/nftables/compare.ts";
import { inputLink, sourceMac } from "../../ffi/netlink/nftables/packet-match.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { delRule, flushChain, listRules } from "../../ffi/netlink/nftables/rule.ts";
import {
  createElement,
  delElement,
  getElement,
  linkNameAndMacKey,
  linkNameKey,
  linkNameOf,
  listElements,
  type NftSet,
} from "../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_BR_PRE_ROUTING, NFPROTO_BRIDGE, NFT_REG_2 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { fromUtf8 } from "../../ffi/libc.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { parseMac } from "../../net/mac.ts";
import { lacksNfTables, netfilterOf } from "./shared/netfilter-socket.ts";
import { type FoundElement, ownTables } from "./shared/own-tables.ts";
import { OwnedTable } from "./shared/owned-table.ts";
import { ownerComment } from "./shared/owner-comment.ts";

interface MacSpoofCheckSpec {
  containerId: string;
  ifName: string;
  /** "" when it is not known any more. */
  hostVeth: string;
  mac: string;
}

const table = ownTables["mac-spoof-check"];
const prerouting: Chain = { table, name: "prerouting" };
const guarded: NftSet = { table, name: "guarded" };
const allowed: NftSet = { table, name: "allowed" };
const SPOOFED = "spoofed";

const owned = new OwnedTable({
  table,
  chains: [{
    chain: prerouting,
    hook: { type: "filter", hook: NF_BR_PRE_ROUTING, priority: -300 },
    rules: [
      [inputLink, sourceMac(NFT_REG_2), isIn(allowed.name), accept],
      [inputLink, countIn(guarded.name), drop],
    ],
    replaces: () => true,
  }],
  sets: [
    { set: guarded, key: linkNameKey, holds: "counters" },
    { set: allowed, key: linkNameAndMacKey, holds: "keys" },
  ],
  counter: SPOOFED,
});

/** Without the network: an interface of a container is on one. */
function commentOf({ containerId, ifName }: MacSpoofCheckSpec): string {
  return ownerComment({ containerId, ifName });
}

/** The link's name; the same with the MAC address in the next eight bytes. */
function keysOf({ hostVeth, mac }: MacSpoofCheckSpec): { link: Uint8Array; linkAndMac: Uint8Array } {
  const link = linkNameOf(hostVeth), linkAndMac = new Uint8Array(linkNameAndMacKey.length);
  linkAndMac.set(link);
  linkAndMac.set(parseMac(mac) ?? [], link.length);
  return { link, linkAndMac };
}

function elementsOf(spec: MacSpoofCheckSpec): NftMessage[] {
  const comment = commentOf(spec), { link, linkAndMac } = keysOf(spec);
  return [
    createElement(guarded, { key: link, comment, counter: SPOOFED }),
    createElement(allowed, { key: linkAndMac, comment }),
  ];
}

function planApply(socket: NetlinkSocket, spec: MacSpoofCheckSpec): NftMessage[] {
  const { link } = keysOf(spec);
  const use = owned.counterUse(socket, SPOOFED);
  const isStale = use && getElement(socket, guarded, link) !== undefined;
  return [
    ...use === undefined ? owned.frame() : [],
    ...isStale ? planStale(socket, link) : [],
    ...elementsOf(spec),
  ];
}

function planRepair(socket: NetlinkSocket, spec: MacSpoofCheckSpec): NftMessage[] {
  if (owned.counterUse(socket, SPOOFED) === undefined) return [...owned.frame(), ...elementsOf(spec)];
  return [...owned.mend(socket), ...planStale(socket, keysOf(spec).link), ...elementsOf(spec)];
}

/** Removes the elements of a former link of this name. */
function planStale(socket: NetlinkSocket, link: Uint8Array): NftMessage[] {
  const macs = listElements(socket, allowed).filter(({ key }) => startsWith(key, link));
  return [
    ...getElement(socket, guarded, link) === undefined ? [] : [delElement(guarded, link)],
    ...macs.map(({ key }) => delElement(allowed, key)),
  ];
}

/** Without a ledger the link's name may be unknown, and the MAC address another one by now. */
function findOwn(socket: NetlinkSocket, spec: MacSpoofCheckSpec, isRestated = false): FoundElement[] {
  const owner = commentOf(spec), { link, linkAndMac } = keysOf(spec);
  return isRestated || spec.hostVeth === ""
    ? owned.findWhere(socket, [guarded, allowed], (comment) => comment === owner)
    : owned.find(socket, [{ set: guarded, key: link }, { set: allowed, key: linkAndMac }], owner);
}

/**
 * For GC: the elements of links that are gone, of any network. Elements are made before their link, and a ledger names
 * both by then.
 */
function findLeft(netfilter: NetlinkSocket, host: Host): FoundElement[] {
  const without = owned.findWhere(netfilter, [guarded], () => true)
    .map((element) => ({ ...element, link: fromUtf8(element.key).replace(/\0+$/, "") }))
    .filter(({ link }) => linkIndex(host.route, link) === undefined);
  const recorded = without.length === 0 ? [] : host.recordedByOthers("mac-spoof-check", NO_OWNER);
  const gone = without.filter(({ link }) => !recorded.some((spec) => (spec as MacSpoofCheckSpec).hostVeth === link));
  if (gone.length === 0) return [];
  const macs = owned.findWhere(netfilter, [allowed], () => true);
  return [...gone, ...macs.filter(({ key }) => gone.some((link) => startsWith(key, link.key)))];
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => byte === bytes[index]);
}

/** The reference plugin's chains and rules for the container. */
function referenceOf({ containerId, ifName }: MacSpoofCheckSpec) {
  const nat = { family: NFPROTO_BRIDGE, name: "nat" }, name = `cni-br-iface-${containerId}-${ifName}`;
  return {
    entry: { table: nat, name: "PREROUTING" },
    chain: { table: nat, name },
    macChain: { table: nat, name: `${name}-mac` },
    comment: `macspoofchk-${containerId}-${ifName}`,
  };
}

function planReferenceRemoval(socket: NetlinkSocket, spec: MacSpoofCheckSpec): NftMessage[] {
  const { entry, chain, macChain, comment } = referenceOf(spec);
  const present = [chain, macChain].filter((each) => chainUse(socket, each) !== undefined);
  if (present.length === 0) return [];
  return [
    ...listRules(socket, entry).filter((rule) => rule.comment === comment).map(({ handle }) =>
      delRule(entry, handle)
    ),
    ...present.map(flushChain),
    ...present.map(delChain),
  ];
}

export const macSpoofCheckKind: ResourceKind<MacSpoofCheckSpec> = {
  kind: "mac-spoof-check",
  confines: true,
  isOfInterface: true,
  apply(spec, host) {
    try {
      if (commitUnchanged(host.netfilter, () => planApply(host.netfilter, spec))) return;
    } catch (error) {
      undoUnlessRefused(error, () => macSpoofCheckKind.remove(spec, host));
      throw error;
    }
    throw lacksNfTables("macspoofchk needs");
  },
  verify(spec, { netfilter }) {
    if (chainUse(netfilter, referenceOf(spec).macChain) !== undefined) return [];
    const { link, linkAndMac } = keysOf(spec), comment = commentOf(spec);
    const differences: string[] = [];
    if (getElement(netfilter, guarded, link)?.comment !== comment) {
      differences.push(`${spec.hostVeth} is not in map guarded of table ${owned.name}`);
    }
    if (getElement(netfilter, allowed, linkAndMac)?.comment !== comment) {
      differences.push(`${spec.hostVeth} with ${spec.mac} is not in set allowed of table ${owned.name}`);
    }
    return [...differences, ...owned.verifyRules(netfilter)];
  },
  repair(spec, { netfilter }) {
    commitUnchanged(netfilter, () => planRepair(netfilter, spec));
  },
  remove(spec, host, isRestated) {
    const netfilter = netfilterOf(host);
    if (netfilter === undefined) return;
    owned.remove(netfilter, () => findOwn(netfilter, spec, isRestated));
    commitUnchanged(netfilter, () => planReferenceRemoval(netfilter, spec));
  },
  sweep(_network, _isValid, host) {
    const netfilter = netfilterOf(host);
    if (netfilter !== undefined) owned.remove(netfilter, () => findLeft(netfilter, host));
  },
  ownTable: () => nameOfTable(table),
  describe: ({ hostVeth, mac }) => `only frames from ${mac} through ${hostVeth}`,
};

export const macSpoofCheck = resource(macSpoofCheckKind);
