/**
 * Forwarding in a table of our own, see owned-table.ts. A container has an element for each address.
 *
 *     table inet patchbay_firewall {
 *       counter open { }
 *       counter on_br0 { }
 *       map addresses4 { type ipv4_addr : counter; elements = { 10.88.0.5 comment "id: …" : "on_br0" } }
 *       map addresses6 { type ipv6_addr : counter; }
 *       set guarded { type ifname; elements = { "br0" } }
 *       set within { type ifname . ifname; elements = { "br0" . "br0" } }
 *       map members { type mark . mark : counter; elements = { 0x… . 0x… comment "id: …" : "on_br0" } }
 *       chain forward {
 *         type filter hook forward priority filter; policy accept;
 *         iifname @guarded oifname @guarded iifname . oifname != @within drop
 *         ct state established,related counter name ip daddr map @addresses4 accept
 *         counter name ip saddr map @addresses4 accept
 *         …                                                                          # the same for version 6
 *       }
 *     }
 *
 * The link of a container with an ingress policy is in `guarded`: no packet goes from it to another guarded link. With the
 * policy same-bridge it is in `within` as well: packets that stay on it pass. Where two networks give one bridge different
 * policies, isolated applies until the bridge's last container is removed.
 *
 * So that links of all backends are kept apart, `guard` puts those of the others here, too: the container is in `members`,
 * as is one of ours that has no addresses. No rule looks there.
 *
 * Accepting here does not override a drop in another program's table: the kernel asks every table.
 */
import { type Chain, createCounter } from "../../../ffi/netlink/nftables/table.ts";
import { commitUnchanged, hasNfTables } from "../../../ffi/netlink/nftables/batch.ts";
import { countIn, equals, isIn, isNotIn } from "../../../ffi/netlink/nftables/compare.ts";
import {
  destinationAddress,
  establishedOrRelated,
  inputAndOutputLink,
  inputLink,
  outputLink,
  protocolFamily,
  sourceAddress,
} from "../../../ffi/netlink/nftables/packet-match.ts";
import type { Expression } from "../../../ffi/netlink/nftables/expression.ts";
import { accept, drop } from "../../../ffi/netlink/nftables/action.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import {
  createElement,
  delElement,
  getElement,
  ipv4Key,
  ipv6Key,
  linkNameKey,
  linkNameOf,
  linkNamesKey,
  linkNamesOf,
  type NftSet,
} from "../../../ffi/netlink/nftables/set.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NF_INET_FORWARD, NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { parseAddress } from "../../../net/address.ts";
import type { Host } from "../../../contract/host.ts";
import { type Backend, obstacles } from "../shared/backend.ts";
import { counterOn, linkOfCounter, memberIn, membersIn } from "../shared/link-members.ts";
import { netfilterOf } from "../shared/netfilter-socket.ts";
import { type GroupPlace, ownTables } from "../shared/own-tables.ts";
import { OwnedTable } from "../shared/owned-table.ts";
import { ownerComment } from "../shared/owner-comment.ts";
import type { FirewallSpec, MadeChains } from "./spec.ts";

const table = ownTables.firewall;
const forward: Chain = { table, name: "forward" };
const addresses4: NftSet = { table, name: "addresses4" };
const addresses6: NftSet = { table, name: "addresses6" };
const guarded: NftSet = { table, name: "guarded" };
const within: NftSet = { table, name: "within" };
const members = membersIn(table);
/** The key in `within`. */
const stayingOn = (link: string) => linkNamesOf(link, link);
/** The counter of containers without an ingress policy; those with one count for their bridge. */
const NO_POLICY = "open";

function acceptFor(family: number, addressLength: number, map: NftSet): Expression[][] {
  const ofFamily = [protocolFamily, equals(new Uint8Array([family]))];
  return [
    [...ofFamily, ...establishedOrRelated, destinationAddress(addressLength), countIn(map.name), accept],
    [...ofFamily, sourceAddress(addressLength), countIn(map.name), accept],
  ];
}

const owned = new OwnedTable({
  table,
  chains: [{
    chain: forward,
    hook: { type: "filter", hook: NF_INET_FORWARD, priority: 0 },
    rules: [
      [
        inputLink,
        isIn(guarded.name),
        outputLink,
        isIn(guarded.name),
        ...inputAndOutputLink,
        isNotIn(within.name),
        drop,
      ],
      ...acceptFor(NFPROTO_IPV4, 4, addresses4),
      ...acceptFor(NFPROTO_IPV6, 16, addresses6),
    ],
  }],
  sets: [
    { set: addresses4, key: ipv4Key, holds: "counters" },
    { set: addresses6, key: ipv6Key, holds: "counters" },
    { set: guarded, key: linkNameKey, holds: "keys" },
    { set: within, key: linkNamesKey, holds: "keys" },
    members,
  ],
  groups: {
    elements(counter) {
      const bridge = linkOfCounter(counter);
      if (bridge === undefined) return [];
      return [{ set: guarded, key: linkNameOf(bridge) }, { set: within, key: stayingOn(bridge) }];
    },
  },
});

function counterOf({ ingress }: FirewallSpec): string {
  return ingress === undefined ? NO_POLICY : counterOn(ingress.bridge);
}

interface NamedPlace extends GroupPlace {
  /** For messages. */
  what: string;
}

function memberPlace(spec: FirewallSpec): NamedPlace {
  return { ...memberIn(table, spec), what: "the container" };
}

function placesOf(spec: FirewallSpec): NamedPlace[] {
  const places: NamedPlace[] = [];
  for (const what of spec.addresses) {
    const key = parseAddress(what);
    if (key !== undefined) places.push({ set: key.length === 4 ? addresses4 : addresses6, key, what });
  }
  return places.length === 0 && spec.ingress !== undefined ? [memberPlace(spec)] : places;
}

/** Makes the counter with its link's elements, or mends what is there. */
function planGroup(socket: NetlinkSocket, spec: FirewallSpec): NftMessage[] {
  const counter = counterOf(spec), { ingress } = spec, messages: NftMessage[] = [];
  if (owned.counterUse(socket, counter) === undefined) {
    if (!owned.exists(socket)) messages.push(...owned.frame());
    messages.push(createCounter(table, counter));
    if (ingress === undefined) return messages;
    messages.push(createElement(guarded, { key: linkNameOf(ingress.bridge), comment: "" }));
    if (ingress.policy === "same-bridge") {
      messages.push(createElement(within, { key: stayingOn(ingress.bridge), comment: "" }));
    }
    return messages;
  }
  if (ingress !== undefined && getElement(socket, guarded, linkNameOf(ingress.bridge)) === undefined) {
    messages.push(createElement(guarded, { key: linkNameOf(ingress.bridge), comment: "" }));
  }
  if (
    ingress?.policy === "isolated" &&
    getElement(socket, within, stayingOn(ingress.bridge)) !== undefined
  ) {
    messages.push(delElement(within, stayingOn(ingress.bridge)));
  }
  return [...messages, ...owned.mend(socket)];
}

function planApply(socket: NetlinkSocket, spec: FirewallSpec, places: readonly NamedPlace[]): NftMessage[] {
  return [
    ...planGroup(socket, spec),
    ...owned.move(socket, places, { comment: ownerComment(spec), counter: counterOf(spec) }),
  ];
}

function verifyPlaces(spec: FirewallSpec, netfilter: NetlinkSocket, places: readonly NamedPlace[]): string[] {
  const comment = ownerComment(spec), counter = counterOf(spec), { ingress } = spec;
  const differences: string[] = [];
  for (const { set, key, what } of places) {
    const where = `${what} in map ${set.name} of table ${owned.name}`;
    differences.push(...owned.verifyElement(netfilter, set, { key, comment, counter }, where));
  }
  if (ingress !== undefined && getElement(netfilter, guarded, linkNameOf(ingress.bridge)) === undefined) {
    differences.push(`${ingress.bridge} in set guarded of table ${owned.name} is missing`);
  }
  if (
    ingress?.policy === "isolated" &&
    getElement(netfilter, within, stayingOn(ingress.bridge)) !== undefined
  ) {
    differences.push(`${ingress.bridge} is in set within of table ${owned.name}`);
  }
  return [...differences, ...owned.verifyRules(netfilter)];
}

function obstacle(spec: FirewallSpec, host: Host, places: readonly NamedPlace[]): string | undefined {
  return obstacles().obstacleToNftables(host, table, (socket) => planApply(socket, spec, places));
}

export const backend: Backend<FirewallSpec, MadeChains> = {
  onlyNfTables: true,
  apply: (spec, { netfilter }) => commitUnchanged(netfilter, () => planApply(netfilter, spec, placesOf(spec))),
  verify: (spec, { netfilter }) => verifyPlaces(spec, netfilter, placesOf(spec)),
  ...owned.removal(placesOf, () => [addresses4, addresses6, members.set]),
  obstacle: (spec, host) => obstacle(spec, host, placesOf(spec)),
};

/**
 * For other backends: the container's link is guarded here as well. Where the kernel cannot have the table, nobody else can
 * have written a link there.
 */
export const guard = {
  /** Returns false where the kernel cannot. */
  apply(spec: FirewallSpec, host: Host): boolean {
    const socket = netfilterOf(host), places = [memberPlace(spec)];
    if (socket === undefined) return false;
    try {
      return commitUnchanged(socket, () => planApply(socket, spec, places));
    } catch (error) {
      if (!isNetlinkError(error) || obstacle(spec, host, places) === undefined) throw error;
      return false;
    }
  },
  verify(spec: FirewallSpec, host: Host): string[] {
    const socket = netfilterOf(host), places = [memberPlace(spec)];
    if (socket === undefined || !hasNfTables(socket)) return [];
    const differences = verifyPlaces(spec, socket, places);
    return differences.length > 0 && obstacle(spec, host, places) !== undefined ? [] : differences;
  },
  remove: owned.removal((spec: FirewallSpec) => [memberPlace(spec)], () => [members.set]).remove,
};
