/**
 * Frames from a container pass only with the MAC address it was given (`macspoofchk` of bridge). One rule drops for all
 * containers; each adds an element to a map and to a set, and neither a frame nor a verb takes longer when there are
 * more of them.
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
 * The kernel keeps how many elements refer to the counter: the last one to go takes the table with it.
 *
 * The reference plugin writes two chains a container into `table bridge nat`. They are removed here, never written.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { addBaseChain, type Chain, chainUse, delChain } from "../../ffi/netlink/nftables/chain.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { isSameRule } from "../../ffi/netlink/nftables/expr/expression.ts";
import { accept, drop } from "../../ffi/netlink/nftables/expr/immediate.ts";
import { isIn } from "../../ffi/netlink/nftables/expr/lookup.ts";
import { inputLink } from "../../ffi/netlink/nftables/expr/meta.ts";
import { countIn } from "../../ffi/netlink/nftables/expr/objref.ts";
import { sourceMac } from "../../ffi/netlink/nftables/expr/payload.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { counterUse, createCounter } from "../../ffi/netlink/nftables/object.ts";
import { addRule, delRule, flushChain, listRules } from "../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  createSet,
  delElement,
  getElement,
  linkNameAndMacKey,
  linkNameKey,
  listElements,
  type NftSet,
} from "../../ffi/netlink/nftables/set.ts";
import { addTable, delTable } from "../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { NF_BR_PRE_ROUTING, NFPROTO_BRIDGE, NFT_REG_2 } from "../../ffi/netlink/uapi/nf-tables.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { parseMac } from "../../net/mac.ts";
import { netfilterOf } from "./netfilter-socket.ts";
import { ownerComment } from "./owner-comment.ts";

export interface MacSpoofCheckSpec {
  containerId: string;
  ifName: string;
  /** "" when it is not known any more. */
  hostVeth: string;
  mac: string;
}

const table = { family: NFPROTO_BRIDGE, name: "patchbay_macspoofchk" };
const prerouting: Chain = { table, name: "prerouting" };
const guarded: NftSet = { table, name: "guarded" };
const allowed: NftSet = { table, name: "allowed" };
const SPOOFED = "spoofed";

const rules = [
  [inputLink, sourceMac(NFT_REG_2), isIn(allowed.name), accept],
  [inputLink, countIn(guarded.name), drop],
];

/** What the first container needs. */
function frame(): NftMessage[] {
  return [
    addTable(table, "Patchbay: containers whose source MAC is checked"),
    chain(),
    createCounter(table, SPOOFED),
    createCounterMap(guarded, linkNameKey),
    createSet(allowed, linkNameAndMacKey),
    ...ruleMessages(),
  ];
}

function chain(): NftMessage {
  return addBaseChain(prerouting, { type: "filter", hook: NF_BR_PRE_ROUTING, priority: -300 });
}

function ruleMessages(): NftMessage[] {
  return rules.map((rule) => addRule(prerouting, rule));
}

/** A container's interface is on one network, so its name is left out. */
function commentOf({ containerId, ifName }: MacSpoofCheckSpec): string {
  return ownerComment({ containerId, ifName });
}

/** The link's name in 16 bytes, and its address in the eight that six of them take. */
function keysOf({ hostVeth, mac }: MacSpoofCheckSpec): { link: Uint8Array; linkAndMac: Uint8Array } {
  const linkAndMac = new Uint8Array(24);
  linkAndMac.set(utf8(hostVeth));
  linkAndMac.set(parseMac(mac) ?? [], 16);
  return { link: linkAndMac.slice(0, 16), linkAndMac };
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
  const use = counterUse(socket, table, SPOOFED);
  const isStale = use && getElement(socket, guarded, link) !== undefined;
  return [
    ...use === undefined ? frame() : [],
    ...isStale ? planStale(socket, link) : [],
    ...elementsOf(spec),
  ];
}

function planRepair(socket: NetlinkSocket, spec: MacSpoofCheckSpec): NftMessage[] {
  if (counterUse(socket, table, SPOOFED) === undefined) return [...frame(), ...elementsOf(spec)];
  const mended = hasRules(socket) ? [] : [chain(), flushChain(prerouting), ...ruleMessages()];
  return [...mended, ...planStale(socket, keysOf(spec).link), ...elementsOf(spec)];
}

/** What is there for a link of this name, which is another one now. */
function planStale(socket: NetlinkSocket, link: Uint8Array): NftMessage[] {
  const macs = listElements(socket, allowed).filter(({ key }) => startsWith(key, link));
  return [
    ...getElement(socket, guarded, link) === undefined ? [] : [delElement(guarded, link)],
    ...macs.map(({ key }) => delElement(allowed, key)),
  ];
}

function hasRules(socket: NetlinkSocket): boolean {
  const present = listRules(socket, prerouting);
  return rules.every((rule, index) => present[index] && isSameRule(rule, present[index].expressions));
}

/** The elements of these links and owners go, and with the last of them the table. */
function planElements(socket: NetlinkSocket, links: Uint8Array[], macs: () => Uint8Array[]): NftMessage[] {
  if (links.length === 0) return [];
  if (counterUse(socket, table, SPOOFED) === links.length) return [delTable(table)];
  return [...links.map((key) => delElement(guarded, key)), ...macs().map((key) => delElement(allowed, key))];
}

function planRemoval(socket: NetlinkSocket, spec: MacSpoofCheckSpec): NftMessage[] {
  const comment = commentOf(spec), { link, linkAndMac } = keysOf(spec);
  const isOurs = (element: { comment: string } | undefined) => element?.comment === comment;
  const listed = (set: NftSet) => listElements(socket, set).filter(isOurs).map(({ key }) => key);
  const links = spec.hostVeth === "" ? listed(guarded) : isOurs(getElement(socket, guarded, link)) ? [link] : [];
  return planElements(
    socket,
    links,
    () => isOurs(getElement(socket, allowed, linkAndMac)) ? [linkAndMac] : listed(allowed),
  );
}

/** A link is there before it is guarded, so what guards no link is left over, whoever's it was. */
function planSweep(netfilter: NetlinkSocket, route: NetlinkSocket): NftMessage[] {
  const gone = listElements(netfilter, guarded).map(({ key }) => key).filter((key) =>
    linkIndex(route, fromUtf8(key).replace(/\0+$/, "")) === undefined
  );
  return planElements(
    netfilter,
    gone,
    () =>
      listElements(netfilter, allowed).map(({ key }) => key).filter((key) =>
        gone.some((link) => startsWith(key, link))
      ),
  );
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
  isOfInterface: true,
  unmade: undefined,
  apply(spec, host) {
    try {
      if (commitUnchanged(host.netfilter, () => planApply(host.netfilter, spec))) return;
    } catch (error) {
      // Not the kernel's refusal: its answer was lost, and it may have done what it was asked.
      if (error instanceof SyscallError) undoAfter(error, () => macSpoofCheckKind.remove(spec, host));
      throw error;
    }
    throw new Error("macspoofchk needs nf_tables, which this kernel does not have");
  },
  verify(spec, { netfilter }: Host) {
    if (chainUse(netfilter, referenceOf(spec).macChain) !== undefined) return [];
    const { link, linkAndMac } = keysOf(spec), comment = commentOf(spec);
    const differences: string[] = [];
    if (getElement(netfilter, guarded, link)?.comment !== comment) {
      differences.push(`${spec.hostVeth} is not in map guarded of table bridge ${table.name}`);
    }
    if (getElement(netfilter, allowed, linkAndMac)?.comment !== comment) {
      differences.push(`${spec.hostVeth} with ${spec.mac} is not in set allowed of table bridge ${table.name}`);
    }
    if (!hasRules(netfilter)) {
      differences.push(`chain prerouting of table bridge ${table.name} has other rules than it should`);
    }
    return differences;
  },
  repair(spec, { netfilter }) {
    commitUnchanged(netfilter, () => planRepair(netfilter, spec));
  },
  remove(spec, host) {
    const netfilter = netfilterOf(host);
    if (netfilter === undefined) return;
    commitUnchanged(netfilter, () => planRemoval(netfilter, spec));
    commitUnchanged(netfilter, () => planReferenceRemoval(netfilter, spec));
  },
  sweep(_network, _isValid, host) {
    const netfilter = netfilterOf(host);
    if (netfilter !== undefined) commitUnchanged(netfilter, () => planSweep(netfilter, host.route));
  },
  ownTable: () => "bridge patchbay_macspoofchk",
  describe: ({ hostVeth, mac }) => `only frames from ${mac} through ${hostVeth}`,
};

export const macSpoofCheck = resource(macSpoofCheckKind);
