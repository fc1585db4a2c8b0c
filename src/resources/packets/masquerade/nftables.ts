/**
 * Masquerading in a table of our own. Each subnet has one rule, and a map that holds its containers' addresses; neither
 * a packet nor a verb takes longer when there are more containers.
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
 * The counter is there because of what the kernel keeps beside it: how many elements refer to it. So the last one to
 * leave a subnet is known without a look at the others, and takes the subnet's rule and map with it, or the table. A map
 * of verdicts would tell the same, but the kernel walks all of it whenever an element is added (25 ns for each one).
 */
import { addBaseChain, type Chain } from "../../../ffi/netlink/nftables/chain.ts";
import { multicast4, multicast6, notTo } from "../../../ffi/netlink/nftables/address-match.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import { equals } from "../../../ffi/netlink/nftables/expr/cmp.ts";
import { type Expression, isSameRule } from "../../../ffi/netlink/nftables/expr/expression.ts";
import { masquerade } from "../../../ffi/netlink/nftables/expr/masq.ts";
import { protocolFamily } from "../../../ffi/netlink/nftables/expr/meta.ts";
import { countIn, countsIn } from "../../../ffi/netlink/nftables/expr/objref.ts";
import { sourceAddress } from "../../../ffi/netlink/nftables/expr/payload.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { counterUse, createCounter, delCounter } from "../../../ffi/netlink/nftables/object.ts";
import { addRule, delRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  delElement,
  delSet,
  getElement,
  ipv4Key,
  ipv6Key,
  listElements,
  listSets,
} from "../../../ffi/netlink/nftables/set.ts";
import { addTable, delTable, tableUse } from "../../../ffi/netlink/nftables/table.ts";
import { EBUSY, EEXIST } from "../../../ffi/errno.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import {
  NF_INET_POST_ROUTING,
  NFPROTO_INET,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
} from "../../../ffi/netlink/uapi/nf-tables.ts";
import { formatAddress, formatPrefix, networkOf, parsePrefix, type Prefix } from "../../../net/address.ts";
import type { MasqueradeSpec } from "./masquerade.ts";
import { ownerComment } from "../owner-comment.ts";

const table = { family: NFPROTO_INET, name: "patchbay_masquerade" };
const postrouting: Chain = { table, name: "postrouting" };
/** In the table besides what each subnet has: the chain. */
const TABLE_USE = 1;
/** A subnet's map and counter. */
const SUBNET_USE = 2;

/** Addresses masqueraded by one rule, and the name of their map and counter. */
interface Group {
  name: string;
  /** Traffic inside of it keeps its source. Addresses without a subnet share a group that has none. */
  network: Prefix | undefined;
  addressLength: number;
  addresses: Uint8Array[];
}

const nowhere: Prefix = { bytes: new Uint8Array(4), bits: 0 };

/** Nothing is outside of 0.0.0.0/0, so an address with no network bits is in no group; nor is what is no address. */
function groupsOf(addresses: readonly string[]): Group[] {
  const groups: Group[] = [];
  for (const text of new Set(addresses)) {
    const { bytes, bits } = parsePrefix(text) ?? nowhere;
    if (bits === 0) continue;
    const alone = bits === bytes.length * 8;
    const network = alone ? undefined : { bytes: networkOf({ bytes, bits }), bits };
    // nft(8) takes no ":" in a name.
    const name = network
      ? `from_${formatPrefix(network).replaceAll(":", "-")}`
      : `from_single_ipv${bytes.length === 4 ? 4 : 6}`;
    const group = groups.find((other) => other.name === name);
    if (group === undefined) groups.push({ name, network, addressLength: bytes.length, addresses: [bytes] });
    else group.addresses.push(bytes);
  }
  return groups;
}

function mapOf(name: string) {
  return { table, name };
}

function ruleOf({ name, network, addressLength }: Group): Expression[] {
  const v4 = addressLength === 4;
  return [
    protocolFamily,
    equals(new Uint8Array([v4 ? NFPROTO_IPV4 : NFPROTO_IPV6])),
    ...network ? notTo(network) : [],
    ...notTo(v4 ? multicast4 : multicast6),
    sourceAddress(addressLength),
    countIn(name),
    masquerade,
  ];
}

/** Answers false when the kernel has no nf_tables. */
export function apply(socket: NetlinkSocket, spec: MasqueradeSpec): boolean {
  try {
    return commitUnchanged(socket, () => planFresh(socket, spec));
  } catch (error) {
    if (!isNetlinkError(error, EEXIST)) throw error;
    return commitUnchanged(socket, () => planOver(socket, spec));
  }
}

/** Counts on the addresses being nobody's, as they nearly always are: then they need not be looked up. */
function planFresh(socket: NetlinkSocket, spec: MasqueradeSpec): NftMessage[] {
  const comment = ownerComment(spec);
  const structure: NftMessage[] = [], elements: NftMessage[] = [];
  for (const group of groupsOf(spec.addresses)) {
    const { name, addresses } = group;
    if (counterUse(socket, table, name) === undefined) {
      structure.push(...structureOf(group), addRule(postrouting, ruleOf(group)));
    }
    for (const key of addresses) elements.push(createElement(mapOf(name), { key, comment, counter: name }));
  }
  return structure.length === 0 ? elements : [...frame(), ...structure, ...elements];
}

/** Takes addresses over from whoever had them before, and mends what somebody else may have removed. */
function planOver(socket: NetlinkSocket, spec: MasqueradeSpec): NftMessage[] {
  const comment = ownerComment(spec);
  const structure: NftMessage[] = [], elements: NftMessage[] = [];
  for (const group of groupsOf(spec.addresses)) {
    const { name, addresses } = group;
    for (const key of addresses) {
      if (getElement(socket, mapOf(name), key) !== undefined) elements.push(delElement(mapOf(name), key));
      elements.push(createElement(mapOf(name), { key, comment, counter: name }));
    }
    if (counterUse(socket, table, name) === undefined) structure.push(...structureOf(group));
    if (!hasRule(socket, group)) structure.push(addRule(postrouting, ruleOf(group)));
  }
  return [...frame(), ...structure, ...elements];
}

/** Mends what somebody else removed. An address that became another owner's stays with that one. */
export function repair(socket: NetlinkSocket, spec: MasqueradeSpec): void {
  const comment = ownerComment(spec);
  commitUnchanged(socket, () => {
    const addresses = spec.addresses.filter((address) =>
      groupsOf([address]).every(({ name, addresses: [key] }) =>
        (getElement(socket, mapOf(name), key!)?.comment ?? comment) === comment
      )
    );
    return planOver(socket, { ...spec, addresses });
  });
}

function structureOf({ name, addressLength }: Group): NftMessage[] {
  return [createCounter(table, name), createCounterMap(mapOf(name), addressLength === 4 ? ipv4Key : ipv6Key)];
}

/** What the first subnet needs; there or not. */
function frame(): NftMessage[] {
  return [
    addTable(table, "Patchbay: container addresses to masquerade, a map for each subnet"),
    addBaseChain(postrouting, { type: "nat", hook: NF_INET_POST_ROUTING, priority: 100 }),
  ];
}

function hasRule(socket: NetlinkSocket, group: Group): boolean {
  return listRules(socket, postrouting).some(({ expressions }) => isSameRule(ruleOf(group), expressions));
}

/** Addresses to remove, by the map they are in. */
type Leaving = Map<string, Uint8Array[]>;

function planElements(leaving: Leaving): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const [name, keys] of leaving) {
    for (const key of keys) messages.push(delElement(mapOf(name), key));
  }
  return messages;
}

/** Also removes what only they needed. */
function planRemoval(socket: NetlinkSocket, leaving: Leaving): NftMessage[] {
  const unused: string[] = [];
  for (const [name, keys] of leaving) {
    if (counterUse(socket, table, name) === keys.length) unused.push(name);
  }
  if (unused.length === 0) return planElements(leaving);
  if (tableUse(socket, table) === TABLE_USE + unused.length * SUBNET_USE) return [delTable(table)];
  const rules = listRules(socket, postrouting).filter(({ expressions }) =>
    unused.includes(countsIn(expressions) ?? "")
  );
  return [
    ...rules.map(({ handle }) => delRule(postrouting, handle)),
    ...planElements(leaving),
    ...unused.flatMap((name) => [delSet(mapOf(name)), delCounter(table, name)]),
  ];
}

function removeAll(socket: NetlinkSocket, find: () => Leaving): void {
  try {
    commitUnchanged(socket, () => planRemoval(socket, find()));
  } catch (error) {
    // Somebody's own rule looks into our map, and keeps it.
    if (!isNetlinkError(error, EBUSY)) throw error;
    commitUnchanged(socket, () => planElements(find()));
  }
}

/** Looks up the addresses, and no others. */
export function remove(socket: NetlinkSocket, spec: MasqueradeSpec): void {
  const comment = ownerComment(spec);
  removeAll(socket, () => {
    const leaving: Leaving = new Map();
    for (const { name, addresses } of groupsOf(spec.addresses)) {
      const ours = addresses.filter((key) => getElement(socket, mapOf(name), key)?.comment === comment);
      if (ours.length > 0) leaving.set(name, ours);
    }
    return leaving;
  });
}

/** Looks at every element there is: for an owner whose addresses are not known, and for GC. */
export function removeWhere(socket: NetlinkSocket, isLeaving: (comment: string) => boolean): void {
  removeAll(socket, () => {
    const leaving: Leaving = new Map();
    for (const name of listSets(socket, table)) {
      const keys = listElements(socket, mapOf(name)).filter(({ comment }) => isLeaving(comment)).map(({ key }) =>
        key
      );
      if (keys.length > 0) leaving.set(name, keys);
    }
    return leaving;
  });
}

/** One line for each address that is not masqueraded as it should be. */
export function verify(socket: NetlinkSocket, spec: MasqueradeSpec): string[] {
  const comment = ownerComment(spec);
  return groupsOf(spec.addresses).flatMap((group) => {
    const { name, addresses } = group;
    const differences: string[] = [];
    for (const key of addresses) {
      const found = getElement(socket, mapOf(name), key);
      const what = `masquerade of ${formatAddress(key)} (map ${name} of table inet ${table.name})`;
      if (found === undefined) differences.push(`${what} is missing`);
      else if (found.comment !== comment) differences.push(`${what} belongs to "${found.comment}"`);
    }
    if (!hasRule(socket, group)) {
      differences.push(`the rule for map ${name} of table inet ${table.name} is missing or altered`);
    }
    return differences;
  });
}
