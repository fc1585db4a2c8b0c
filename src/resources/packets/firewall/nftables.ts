/**
 * Forwarding in a table of our own. A container adds an element for each address; neither a packet nor a verb takes
 * longer when there are more of them.
 *
 *     table inet patchbay_firewall {
 *       counter open { }
 *       counter on_br0 { }
 *       map addresses4 { type ipv4_addr : counter; elements = { 10.88.0.5 comment "id: …" : "on_br0" } }
 *       map addresses6 { type ipv6_addr : counter; }
 *       set guarded { type ifname; elements = { "br0" } }
 *       set within { type ifname . ifname; elements = { "br0" . "br0" } }
 *       chain forward {
 *         type filter hook forward priority filter; policy accept;
 *         iifname @guarded oifname @guarded iifname . oifname != @within drop
 *         ct state established,related counter name ip daddr map @addresses4 accept
 *         counter name ip saddr map @addresses4 accept
 *         …                                                                          # the same for version 6
 *       }
 *     }
 *
 * A bridge with an ingress policy is guarded: nothing goes from it to another guarded bridge. What stays on it passes if
 * it is within, as with the policy same-bridge. Where two networks give one bridge different policies, isolated holds
 * until its last container goes. The kernel keeps how many elements refer to a counter, so that is known without a look.
 *
 * Accepting here does not override a drop in somebody else's table: the kernel asks every table.
 */
import { addBaseChain, type Chain } from "../../../ffi/netlink/nftables/chain.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import { equals } from "../../../ffi/netlink/nftables/expr/cmp.ts";
import { establishedOrRelated } from "../../../ffi/netlink/nftables/expr/ct.ts";
import { type Expression, isSameRule } from "../../../ffi/netlink/nftables/expr/expression.ts";
import { accept, drop } from "../../../ffi/netlink/nftables/expr/immediate.ts";
import { isIn, isNotIn } from "../../../ffi/netlink/nftables/expr/lookup.ts";
import {
  inputAndOutputLink,
  inputLink,
  outputLink,
  protocolFamily,
} from "../../../ffi/netlink/nftables/expr/meta.ts";
import { countIn } from "../../../ffi/netlink/nftables/expr/objref.ts";
import { destinationAddress, sourceAddress } from "../../../ffi/netlink/nftables/expr/payload.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { counterUse, createCounter, delCounter } from "../../../ffi/netlink/nftables/object.ts";
import { addRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  createSet,
  delElement,
  getElement,
  ipv4Key,
  ipv6Key,
  linkNameKey,
  linkNamesKey,
  listElements,
  type NftSet,
} from "../../../ffi/netlink/nftables/set.ts";
import { addTable, delTable, tableUse } from "../../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NF_INET_FORWARD, NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { utf8 } from "../../../ffi/libc.ts";
import { parseAddress } from "../../../net/address.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { FirewallSpec } from "./firewall.ts";
import { ownerComment, ownerIn } from "../owner-comment.ts";

export const table = { family: NFPROTO_INET, name: "patchbay_firewall" };
const forward: Chain = { table, name: "forward" };
const addresses4: NftSet = { table, name: "addresses4" };
const addresses6: NftSet = { table, name: "addresses6" };
const guarded: NftSet = { table, name: "guarded" };
const within: NftSet = { table, name: "within" };
/** In the table besides the counters: the chain, two maps, two sets. */
const TABLE_USE = 5;
const NO_POLICY = "open";

const rules: Expression[][] = [
  [inputLink, isIn(guarded.name), outputLink, isIn(guarded.name), ...inputAndOutputLink, isNotIn(within.name), drop],
  ...acceptFor(NFPROTO_IPV4, 4, addresses4),
  ...acceptFor(NFPROTO_IPV6, 16, addresses6),
];

function acceptFor(family: number, addressLength: number, map: NftSet): Expression[][] {
  const ofFamily = [protocolFamily, equals(new Uint8Array([family]))];
  return [
    [...ofFamily, ...establishedOrRelated, destinationAddress(addressLength), countIn(map.name), accept],
    [...ofFamily, sourceAddress(addressLength), countIn(map.name), accept],
  ];
}

/** What the first container needs. */
function frame(): NftMessage[] {
  return [
    addTable(table, "Patchbay: container addresses that may be forwarded, bridges that are kept apart"),
    addBaseChain(forward, { type: "filter", hook: NF_INET_FORWARD, priority: 0 }),
    createCounterMap(addresses4, ipv4Key),
    createCounterMap(addresses6, ipv6Key),
    createSet(guarded, linkNameKey),
    createSet(within, linkNamesKey),
    ...rules.map((rule) => addRule(forward, rule)),
  ];
}

interface Place {
  map: NftSet;
  key: Uint8Array;
}

function placesOf({ addresses }: FirewallSpec): Place[] {
  const places: Place[] = [];
  for (const text of addresses) {
    const key = parseAddress(text);
    if (key !== undefined) places.push({ map: key.length === 4 ? addresses4 : addresses6, key });
  }
  return places;
}

function counterOf({ ingress }: FirewallSpec): string {
  return ingress === undefined ? NO_POLICY : `on_${ingress.bridge}`;
}

/** The bridge that a counter stands for. */
function bridgeOf(counter: string): string | undefined {
  return counter.startsWith("on_") ? counter.slice("on_".length) : undefined;
}

function linkKey(name: string): Uint8Array {
  const key = new Uint8Array(16);
  key.set(utf8(name));
  return key;
}

function linksKey(name: string): Uint8Array {
  const key = new Uint8Array(32);
  key.set(utf8(name));
  key.set(utf8(name), 16);
  return key;
}

export function planApply(socket: NetlinkSocket, spec: FirewallSpec): NftMessage[] {
  const comment = ownerComment(spec), counter = counterOf(spec), { ingress } = spec;
  const messages: NftMessage[] = [];
  if (counterUse(socket, table, counter) === undefined) {
    if (tableUse(socket, table) === undefined) messages.push(...frame());
    messages.push(createCounter(table, counter));
    if (ingress !== undefined) {
      messages.push(createElement(guarded, { key: linkKey(ingress.bridge), comment: "" }));
      if (ingress.policy === "same-bridge") {
        messages.push(createElement(within, { key: linksKey(ingress.bridge), comment: "" }));
      }
    }
  } else {
    if (ingress?.policy === "isolated" && getElement(socket, within, linksKey(ingress.bridge)) !== undefined) {
      messages.push(delElement(within, linksKey(ingress.bridge)));
    }
    if (!hasRules(socket)) messages.push(...rules.map((rule) => addRule(forward, rule)));
  }
  const before: Leaving[] = [], elements: NftMessage[] = [];
  for (const { map, key } of placesOf(spec)) {
    const found = getElement(socket, map, key);
    if (found?.comment === comment && found.counter === counter) continue;
    if (found !== undefined) before.push({ map, key, counter: found.counter! });
    elements.push(createElement(map, { key, comment, counter }));
  }
  return [
    ...messages,
    ...planLeaving(socket, before, unusedAfter(socket, before).filter((one) => one !== counter)),
    ...elements,
  ];
}

function hasRules(socket: NetlinkSocket): boolean {
  const present = listRules(socket, forward);
  return rules.every((rule) => present.some(({ expressions }) => isSameRule(rule, expressions)));
}

interface Leaving extends Place {
  counter: string;
}

/** The counters that nothing refers to any more when these elements are gone. */
function unusedAfter(socket: NetlinkSocket, leaving: readonly Leaving[]): string[] {
  const counts = new Map<string, number>();
  for (const { counter } of leaving) counts.set(counter, (counts.get(counter) ?? 0) + 1);
  const unused: string[] = [];
  for (const [counter, count] of counts) if (counterUse(socket, table, counter) === count) unused.push(counter);
  return unused;
}

/** The elements go, and counters with their bridges' entries. */
function planLeaving(socket: NetlinkSocket, leaving: readonly Leaving[], counters: readonly string[]): NftMessage[] {
  const messages = leaving.map(({ map, key }) => delElement(map, key));
  for (const counter of counters) {
    messages.push(delCounter(table, counter));
    const bridge = bridgeOf(counter);
    if (bridge === undefined) continue;
    for (const [set, key] of [[guarded, linkKey(bridge)], [within, linksKey(bridge)]] as const) {
      if (getElement(socket, set, key) !== undefined) messages.push(delElement(set, key));
    }
  }
  return messages;
}

/** The elements go, and what only they needed. */
function planRemoval(socket: NetlinkSocket, leaving: readonly Leaving[]): NftMessage[] {
  if (leaving.length === 0) return [];
  const unused = unusedAfter(socket, leaving);
  if (unused.length > 0 && tableUse(socket, table) === TABLE_USE + unused.length) return [delTable(table)];
  return planLeaving(socket, leaving, unused);
}

/** Looks at every element there is. */
function leavingWhere(socket: NetlinkSocket, isLeaving: (comment: string) => boolean): Leaving[] {
  const leaving: Leaving[] = [];
  for (const map of [addresses4, addresses6]) {
    for (const { key, comment, counter } of listElements(socket, map)) {
      if (isLeaving(comment)) leaving.push({ map, key, counter: counter! });
    }
  }
  return leaving;
}

export function apply(socket: NetlinkSocket, spec: FirewallSpec): void {
  if (!commitUnchanged(socket, () => planApply(socket, spec))) {
    throw new Error("firewall needs nf_tables, which this kernel does not have");
  }
}

/** Looks up the addresses and no others, unless they may be unknown. */
export function remove(socket: NetlinkSocket, spec: FirewallSpec): void {
  const owner = ownerComment(spec);
  commitUnchanged(socket, () => {
    if (spec.restated) return planRemoval(socket, leavingWhere(socket, (comment) => comment === owner));
    const leaving: Leaving[] = [];
    for (const place of placesOf(spec)) {
      const found = getElement(socket, place.map, place.key);
      if (found?.comment === owner) leaving.push({ ...place, counter: found.counter! });
    }
    return planRemoval(socket, leaving);
  });
}

/** For GC. */
export function sweep(socket: NetlinkSocket, network: string, isValid: (owner: Owner) => boolean): void {
  const isLost = (comment: string) => {
    const owner = ownerIn(comment, network);
    return owner !== undefined && !isValid(owner);
  };
  commitUnchanged(socket, () => planRemoval(socket, leavingWhere(socket, isLost)));
}

/** One line for each thing that is missing. */
export function verify(socket: NetlinkSocket, spec: FirewallSpec): string[] {
  const owner = ownerComment(spec), { ingress } = spec;
  const differences: string[] = [];
  spec.addresses.forEach((address, index) => {
    const { map, key } = placesOf(spec)[index]!, found = getElement(socket, map, key);
    const what = `${address} in map ${map.name} of table inet ${table.name}`;
    if (found === undefined) differences.push(`${what} is missing`);
    else if (found.comment !== owner) differences.push(`${what} belongs to "${found.comment}"`);
    else if (found.counter !== counterOf(spec)) differences.push(`${what} is under "${found.counter}"`);
  });
  if (ingress !== undefined && getElement(socket, guarded, linkKey(ingress.bridge)) === undefined) {
    differences.push(`${ingress.bridge} in set guarded of table inet ${table.name} is missing`);
  }
  if (ingress?.policy === "isolated" && getElement(socket, within, linksKey(ingress.bridge)) !== undefined) {
    differences.push(`${ingress.bridge} is in set within of table inet ${table.name}`);
  }
  if (!hasRules(socket)) {
    differences.push(`a rule in chain forward of table inet ${table.name} is missing or altered`);
  }
  return differences;
}
