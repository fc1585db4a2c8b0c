/**
 * Masquerading in a table of our own, see owned-table.ts. Each subnet has one rule, and a map of its containers' addresses.
 *
 *     table inet patchbay_masquerade {
 *       counter from_10.88.0.0/16 { }
 *       map from_10.88.0.0/16 {
 *         type ipv4_addr : counter
 *         elements = { 10.88.0.5 comment "id: …, if: eth0, net: mynet" : "from_10.88.0.0/16" }
 *       }
 *       chain postrouting {
 *         type nat hook postrouting priority 100; policy accept;
 *         ip daddr != 10.88.0.0/16 ip daddr != 224.0.0.0/4 counter name ip saddr map @from_10.88.0.0/16 masquerade
 *       }
 *     }
 *
 * A map of verdicts would need no counter, but the kernel walks all of it whenever an element is added (25 ns for each).
 */
import type { Chain } from "../../../ffi/netlink/nftables/table.ts";
import {
  multicast4,
  multicast6,
  notTo,
  protocolFamily,
  sourceAddress,
} from "../../../ffi/netlink/nftables/packet-match.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import { countIn, countsIn, equals } from "../../../ffi/netlink/nftables/compare.ts";
import type { Expression } from "../../../ffi/netlink/nftables/expression.ts";
import { masquerade } from "../../../ffi/netlink/nftables/action.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import {
  createElement,
  type Element,
  getElement,
  ipv4Key,
  ipv6Key,
  listSets,
} from "../../../ffi/netlink/nftables/set.ts";
import { EEXIST } from "../../../ffi/errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { NF_INET_POST_ROUTING, NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { formatAddress, formatPrefix, networkOf, parsePrefix, type Prefix } from "../../../net/address.ts";
import type { Backend } from "../shared/backend.ts";
import { type Group, ownTables } from "../shared/own-tables.ts";
import { OwnedTable } from "../shared/owned-table.ts";
import { ownerComment } from "../shared/owner-comment.ts";
import type { MasqueradeSpec } from "./spec.ts";

const table = ownTables.masquerade;
const postrouting: Chain = { table, name: "postrouting" };

const owned = new OwnedTable({
  table,
  chains: [{ chain: postrouting, hook: { type: "nat", hook: NF_INET_POST_ROUTING, priority: 100 } }],
  groups: { maps: (name) => [name], ruleChains: [postrouting], mapOfRule: countsIn },
});

/** Addresses with one rule. Its map and its counter have the same name. */
interface Subnet {
  name: string;
  /** Traffic within it keeps its source. Addresses without a subnet share a rule that has none. */
  network: Prefix | undefined;
  addressLength: number;
  addresses: Uint8Array[];
}

const nowhere: Prefix = { bytes: new Uint8Array(4), bits: 0 };

/** Leaves out an address with a prefix of 0 bits, which has nothing outside its subnet, and what is not an address. */
function subnetsOf(addresses: readonly string[]): Subnet[] {
  const subnets: Subnet[] = [];
  for (const text of new Set(addresses)) {
    const { bytes, bits } = parsePrefix(text) ?? nowhere;
    if (bits === 0) continue;
    const network = bits === bytes.length * 8 ? undefined : { bytes: networkOf({ bytes, bits }), bits };
    // nft(8) takes no ":" in a name.
    const name = network
      ? `from_${formatPrefix(network).replaceAll(":", "-")}`
      : `from_single_ipv${bytes.length === 4 ? 4 : 6}`;
    const subnet = subnets.find((other) => other.name === name);
    if (subnet === undefined) subnets.push({ name, network, addressLength: bytes.length, addresses: [bytes] });
    else subnet.addresses.push(bytes);
  }
  return subnets;
}

function mapOf(name: string) {
  return { table, name };
}

function groupOf({ name, network, addressLength }: Subnet): Group {
  const v4 = addressLength === 4;
  const rule: Expression[] = [
    protocolFamily,
    equals(new Uint8Array([v4 ? NFPROTO_IPV4 : NFPROTO_IPV6])),
    ...network ? notTo(network) : [],
    ...notTo(v4 ? multicast4 : multicast6),
    sourceAddress(addressLength),
    countIn(name),
    masquerade,
  ];
  return {
    counter: name,
    maps: [{ set: mapOf(name), key: v4 ? ipv4Key : ipv6Key, holds: "counters" }],
    rules: { chain: postrouting, rules: [rule], replaces: (found) => countsIn(found) === name },
  };
}

function elementOf({ name }: Subnet, key: Uint8Array, comment: string): Element {
  return { key, comment, counter: name };
}

/** Assumes that nobody has the addresses, as is nearly always so: then they need not be looked up. */
function planFresh(socket: NetlinkSocket, spec: MasqueradeSpec): NftMessage[] {
  const comment = ownerComment(spec), groups: NftMessage[] = [], elements: NftMessage[] = [];
  for (const subnet of subnetsOf(spec.addresses)) {
    if (owned.counterUse(socket, subnet.name) === undefined) groups.push(...owned.create(groupOf(subnet)));
    for (const key of subnet.addresses) {
      elements.push(createElement(mapOf(subnet.name), elementOf(subnet, key, comment)));
    }
  }
  return groups.length === 0 ? elements : [...owned.frame(), ...groups, ...elements];
}

/** Takes addresses over from their former owners, and writes again what others removed. */
function planOver(socket: NetlinkSocket, spec: MasqueradeSpec): NftMessage[] {
  const comment = ownerComment(spec), present: Group[] = [], groups: NftMessage[] = [], elements: NftMessage[] = [];
  for (const subnet of subnetsOf(spec.addresses)) {
    const group = groupOf(subnet);
    if (owned.counterUse(socket, subnet.name) === undefined) groups.push(...owned.create(group));
    else present.push(group);
    for (const key of subnet.addresses) {
      elements.push(...owned.put(socket, mapOf(subnet.name), elementOf(subnet, key, comment)));
    }
  }
  return [...groups.length > 0 ? owned.frame() : [], ...groups, ...owned.mend(socket, present), ...elements];
}

/** Without the addresses that have become another owner's. */
function planRepair(socket: NetlinkSocket, spec: MasqueradeSpec): NftMessage[] {
  const comment = ownerComment(spec);
  const isFree = (name: string, key: Uint8Array) =>
    (getElement(socket, mapOf(name), key)?.comment ?? comment) === comment;
  const addresses = spec.addresses.filter((address) =>
    subnetsOf([address]).every(({ name, addresses: [key] }) => isFree(name, key!))
  );
  return planOver(socket, { ...spec, addresses });
}

function* placesOf({ addresses }: MasqueradeSpec) {
  for (const { name, addresses: keys } of subnetsOf(addresses)) {
    for (const key of keys) yield { set: mapOf(name), key };
  }
}

export const backend: Backend<MasqueradeSpec> = {
  onlyNfTables: true,
  apply(spec, { netfilter }) {
    try {
      return commitUnchanged(netfilter, () => planFresh(netfilter, spec));
    } catch (error) {
      if (!isNetlinkError(error, EEXIST)) throw error;
      return commitUnchanged(netfilter, () => planOver(netfilter, spec));
    }
  },
  verify(spec, { netfilter }) {
    const comment = ownerComment(spec), subnets = subnetsOf(spec.addresses);
    const differences = subnets.flatMap((subnet) =>
      subnet.addresses.flatMap((key) => {
        const what = `masquerade of ${formatAddress(key)} (map ${subnet.name} of table ${owned.name})`;
        return owned.verifyElement(netfilter, mapOf(subnet.name), elementOf(subnet, key, comment), what);
      })
    );
    return [...differences, ...owned.verifyRules(netfilter, subnets.map(groupOf))];
  },
  repair: (spec, { netfilter }) => commitUnchanged(netfilter, () => planRepair(netfilter, spec)),
  ...owned.removal(placesOf, (socket) => listSets(socket, table).map(mapOf)),
};
