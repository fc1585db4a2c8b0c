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
 *       chain forward {
 *         type filter hook forward priority filter; policy accept;
 *         iifname @guarded oifname @guarded iifname . oifname != @within drop
 *         ct state established,related counter name ip daddr map @addresses4 accept
 *         counter name ip saddr map @addresses4 accept
 *         …                                                                          # the same for version 6
 *       }
 *     }
 *
 * A bridge with an ingress policy is in `guarded`: no packet goes from it to another guarded bridge. With the policy
 * same-bridge it is in `within` as well: packets that stay on it pass. Where two networks give one bridge different
 * policies, isolated applies until the bridge's last container is removed.
 *
 * Accepting here does not override a drop in another program's table: the kernel asks every table.
 */
import { type Chain, createCounter } from "../../../ffi/netlink/nftables/table.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
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
  linkNamesKey,
  type NftSet,
} from "../../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NF_INET_FORWARD, NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { utf8 } from "../../../ffi/libc.ts";
import { parseAddress } from "../../../net/address.ts";
import type { Backend } from "../shared/backend.ts";
import { type FoundElement, type GroupPlace, ownTables } from "../shared/own-tables.ts";
import { OwnedTable } from "../shared/owned-table.ts";
import { ownerComment } from "../shared/owner-comment.ts";
import type { FirewallSpec, MadeChains } from "./spec.ts";

const table = ownTables.firewall;
const forward: Chain = { table, name: "forward" };
const addresses4: NftSet = { table, name: "addresses4" };
const addresses6: NftSet = { table, name: "addresses6" };
const guarded: NftSet = { table, name: "guarded" };
const within: NftSet = { table, name: "within" };
/** The counter of containers without an ingress policy; those with one count for their bridge. */
const NO_POLICY = "open", ON_BRIDGE = "on_";

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
    rules: {
      chain: forward,
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
    },
  }],
  sets: [
    { set: addresses4, key: ipv4Key, holds: "counters" },
    { set: addresses6, key: ipv6Key, holds: "counters" },
    { set: guarded, key: linkNameKey, holds: "keys" },
    { set: within, key: linkNamesKey, holds: "keys" },
  ],
  groups: {
    elements(counter) {
      if (!counter.startsWith(ON_BRIDGE)) return [];
      const bridge = counter.slice(ON_BRIDGE.length);
      return [{ set: guarded, key: linkKey(bridge) }, { set: within, key: linksKey(bridge) }];
    },
  },
});

function counterOf({ ingress }: FirewallSpec): string {
  return ingress === undefined ? NO_POLICY : `${ON_BRIDGE}${ingress.bridge}`;
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

function placesOf({ addresses }: FirewallSpec): (GroupPlace & { address: string })[] {
  const places: ReturnType<typeof placesOf> = [];
  for (const address of addresses) {
    const key = parseAddress(address);
    if (key !== undefined) places.push({ set: key.length === 4 ? addresses4 : addresses6, key, address });
  }
  return places;
}

/** Makes the counter with its bridge's elements, or mends what is there. */
function planGroup(socket: NetlinkSocket, spec: FirewallSpec): NftMessage[] {
  const counter = counterOf(spec), { ingress } = spec, messages: NftMessage[] = [];
  if (owned.counterUse(socket, counter) === undefined) {
    if (!owned.exists(socket)) messages.push(...owned.frame());
    messages.push(createCounter(table, counter));
    if (ingress === undefined) return messages;
    messages.push(createElement(guarded, { key: linkKey(ingress.bridge), comment: "" }));
    if (ingress.policy === "same-bridge") {
      messages.push(createElement(within, { key: linksKey(ingress.bridge), comment: "" }));
    }
    return messages;
  }
  if (ingress?.policy === "isolated" && getElement(socket, within, linksKey(ingress.bridge)) !== undefined) {
    messages.push(delElement(within, linksKey(ingress.bridge)));
  }
  return [...messages, ...owned.mend(socket)];
}

function planApply(socket: NetlinkSocket, spec: FirewallSpec): NftMessage[] {
  const comment = ownerComment(spec), counter = counterOf(spec);
  const group = planGroup(socket, spec), before: FoundElement[] = [], elements: NftMessage[] = [];
  for (const { set, key } of placesOf(spec)) {
    const found = getElement(socket, set, key);
    if (found?.comment === comment && found.counter === counter) continue;
    if (found !== undefined) before.push({ ...found, set });
    elements.push(createElement(set, { key, comment, counter }));
  }
  const unused = owned.unusedWithout(socket, before).filter((one) => one !== counter);
  return [...group, ...owned.planGroups(socket, before, unused), ...elements];
}

export const backend: Backend<FirewallSpec, MadeChains> = {
  onlyNfTables: true,
  apply: (spec, { netfilter }) => commitUnchanged(netfilter, () => planApply(netfilter, spec)),
  verify(spec, { netfilter }) {
    const comment = ownerComment(spec), counter = counterOf(spec), { ingress } = spec;
    const differences: string[] = [];
    for (const { set, key, address } of placesOf(spec)) {
      const what = `${address} in map ${set.name} of table ${owned.name}`;
      differences.push(...owned.verifyElement(netfilter, set, { key, comment, counter }, what));
    }
    if (ingress !== undefined && getElement(netfilter, guarded, linkKey(ingress.bridge)) === undefined) {
      differences.push(`${ingress.bridge} in set guarded of table ${owned.name} is missing`);
    }
    if (ingress?.policy === "isolated" && getElement(netfilter, within, linksKey(ingress.bridge)) !== undefined) {
      differences.push(`${ingress.bridge} is in set within of table ${owned.name}`);
    }
    return [...differences, ...owned.verifyRules(netfilter)];
  },
  ...owned.removal(placesOf, () => [addresses4, addresses6]),
  obstacle(spec, host) {
    const { obstacleToNftables } = require(
      "../shared/netfilter-obstacle.ts",
    ) as typeof import("../shared/netfilter-obstacle.ts");
    return obstacleToNftables(host, table, (socket) => planApply(socket, spec));
  },
};
