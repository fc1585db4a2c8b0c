/**
 * Port mappings in a table of our own. A mapping is an element of a map, whatever the number of mappings; neither a
 * packet nor a verb takes longer when there are more of them, and a port has one holder.
 *
 *     table inet patchbay_portmap {
 *       counter ipv4 { }
 *       counter from_10.88.0.0/16 { }
 *       map owners_ipv4 { type mark . mark : counter; elements = { 0x… . 0x… comment "id: …" : "ipv4" } }
 *       map ports_ipv4 {
 *         type inet_proto . inet_service : ipv4_addr . inet_service
 *         elements = { tcp . 8080 comment "id: …, if: eth0, net: mynet" : 10.88.0.5 . 80 }
 *       }
 *       map ports_at_ipv4 { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service }
 *       map ranges_ipv4 { type inet_proto . inet_service : ipv4_addr; flags interval; }
 *       map ranges_at_ipv4 { type ipv4_addr . inet_proto . inet_service : ipv4_addr; flags interval; }
 *       map from_10.88.0.0/16 { type ipv4_addr : counter; elements = { 10.88.0.5 comment "id: …" : … } }
 *       chain prerouting { type nat hook prerouting priority dstnat + 1; fib daddr type local jump mapped; }
 *       chain output { type nat hook output priority dstnat + 1; fib daddr type local jump mapped; }
 *       chain mapped {
 *         dnat ip to ip daddr . meta l4proto . th dport map @ports_at_ipv4
 *         dnat ip to ip daddr . meta l4proto . th dport map @ranges_at_ipv4
 *         meta nfproto ipv4 dnat ip to meta l4proto . th dport map @ports_ipv4
 *         meta nfproto ipv4 dnat ip to meta l4proto . th dport map @ranges_ipv4
 *       }
 *       chain postrouting {
 *         type nat hook postrouting priority srcnat;
 *         ct status dnat ip saddr 10.88.0.0/16 counter name ip daddr map @from_10.88.0.0/16 masquerade
 *       }
 *     }
 *
 * Only what is sent to this host itself is looked up (CVE-2025-67499), after the rules that others have at the usual
 * priority (CVE-2019-9946). A mapping of one address wins over one of all. Mappings with conditions have maps of their
 * own, which are looked into before the others.
 *
 * Long runs of ports that keep their number are one element of an interval map; short ones are not, because the kernel
 * copies such a map whenever it changes. As in masquerade/nftables.ts, counters are there because the kernel keeps how
 * many elements refer to them: so the last to go takes along what only it needed.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { EBUSY } from "../../../ffi/errno.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import { createChain } from "../../../ffi/netlink/nftables/chain.ts";
import { looksInto } from "../../../ffi/netlink/nftables/expr/lookup.ts";
import { countsIn } from "../../../ffi/netlink/nftables/expr/objref.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { counterUse, createCounter, delCounter } from "../../../ffi/netlink/nftables/object.ts";
import { addRule, delRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  delElement,
  delSet,
  type Element,
  getElement,
  ipv4Key,
  ipv6Key,
  type Key,
  listElements,
  listSets,
} from "../../../ffi/netlink/nftables/set.ts";
import { delTable, tableUse } from "../../../ffi/netlink/nftables/table.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { formatAddress } from "../../../net/address.ts";
import type { Owner } from "../../../contract/owner.ts";
import { isOfContainer, ownerComment, ownerIn, ownerKey, ownerText } from "../owner-comment.ts";
import { addressOf, type PortMappingsSpec } from "./port-mappings.ts";
import {
  inScope,
  isSame,
  keyEndOf,
  overlaps,
  OWNERS,
  type Place,
  placesOf,
  portOf,
  PORTS,
  PORTS_AT,
  RANGES,
  RANGES_AT,
  scopeOf,
} from "./nft-elements.ts";
import {
  frame,
  hasRule,
  hasScopeRules,
  lookup,
  mapOf,
  mapped,
  output,
  postrouting,
  prerouting,
  SCOPE_USE,
  scopeMaps,
  scopeRuleMessages,
  type Source,
  SOURCE_USE,
  sourceRule,
  sourcesOf,
  table,
  TABLE_USE,
} from "./nft-structure.ts";

/** From so many elements on, all are listed rather than each asked for. */
const MANY = 64;
const families = [4, 6] as const;

/** What the maps hold: asked for one by one, or listed once where it is asked for often. */
class Contents {
  private readonly lists = new Map<string, Element[]>();
  private readonly byKey = new Map<string, Map<string, Element>>();

  constructor(private readonly socket: NetlinkSocket, private readonly isMany: boolean) {}

  list(map: string): Element[] {
    let elements = this.lists.get(map);
    if (elements === undefined) this.lists.set(map, elements = listElements(this.socket, mapOf(map)));
    return elements;
  }

  /** The element with this key, or whose interval holds it. */
  at(map: string, key: Uint8Array): Element | undefined {
    if (!this.isMany) return getElement(this.socket, mapOf(map), key);
    if (map.startsWith(RANGES)) return this.list(map).find((element) => overlaps(element, { key }));
    let index = this.byKey.get(map);
    if (index === undefined) {
      this.byKey.set(map, index = new Map());
      for (const element of this.list(map)) index.set(element.key.toHex(), element);
    }
    return index.get(key.toHex());
  }

  /** The elements of the map that have a port in common with the place. */
  overlapping(map: string, place: Key): Element[] {
    if (place.keyEnd !== undefined) return this.list(map).filter((element) => overlaps(element, place));
    const element = this.at(map, place.key);
    return element === undefined ? [] : [element];
  }
}

/** Answers false when the kernel has no nf_tables. */
export function apply(socket: NetlinkSocket, spec: PortMappingsSpec): boolean {
  return commitUnchanged(socket, () => planApply(socket, spec));
}

export function planApply(socket: NetlinkSocket, spec: PortMappingsSpec): NftMessage[] {
  const comment = ownerComment(spec), owner = ownerKey(spec);
  const isNew = tableUse(socket, table) === undefined;
  const messages: NftMessage[] = [];
  let isAgain = false;
  for (const family of families) {
    if (addressOf(spec, family) === undefined) continue;
    const scope = scopeOf(spec, family), owners = inScope(OWNERS, scope);
    const places = placesOf(spec, family, scope);
    if (places.length === 0) continue;
    if (isNew || counterUse(socket, table, scope.name) === undefined) {
      messages.push(...scopeMaps(scope), ...scopeRuleMessages(scope));
      for (const { map, key, keyEnd, data } of places) {
        messages.push(createElement(mapOf(map), { key, keyEnd, data, comment }));
      }
      messages.push(createElement(mapOf(owners), { key: owner, comment, counter: scope.name }));
    } else {
      messages.push(...planElements(new Contents(socket, places.length > MANY), places, spec));
      if (getElement(socket, mapOf(owners), owner) === undefined) {
        messages.push(createElement(mapOf(owners), { key: owner, comment, counter: scope.name }));
      } else isAgain = true;
    }
    for (const source of sourcesOf(spec, family)) messages.push(...planSource(socket, source, spec, comment, isNew));
  }
  if (isNew && messages.length > 0) return [...frame(), createChain(mapped), ...lookupRules(), ...messages];
  return isAgain ? [...messages, ...planRules(socket, spec)] : messages;
}

function lookupRules(): NftMessage[] {
  return [addRule(prerouting, lookup), addRule(output, lookup)];
}

/** Throws where a port is somebody else's; what was ours before makes room. */
function planElements(contents: Contents, places: Place[], spec: PortMappingsSpec): NftMessage[] {
  const comment = ownerComment(spec);
  const deletions: NftMessage[] = [], creations: NftMessage[] = [], replaced = new Set<Element>();
  for (const place of places) {
    const { map, key, keyEnd, data } = place;
    const other = map.startsWith(RANGES) ? map.replace(RANGES, PORTS) : map.replace(PORTS, RANGES);
    let isThere = false;
    for (const where of [map, other]) {
      for (const found of contents.overlapping(where, place)) {
        if (found.comment !== comment) {
          if (!leadsToContainer(place, found, where, spec)) throw taken(place, found);
          isThere = true;
          continue;
        }
        isThere = where === map && isSame(found.key, key) && isSame(found.data, data) &&
          (keyEnd === undefined || isSame(found.keyEnd, keyEnd));
        if (isThere || replaced.has(found)) continue;
        replaced.add(found);
        deletions.push(delElement(mapOf(where), found.key, keyEndOf(where, found)));
      }
    }
    if (!isThere) creations.push(createElement(mapOf(map), { key, keyEnd, data, comment }));
  }
  return [...deletions, ...creations];
}

/**
 * Runtimes ask every network of a container for the same ports. The first has them; the others are content when it is
 * the same mapping, whichever of the container's addresses it leads to.
 */
function leadsToContainer(place: Place, found: Element, where: string, { containerId }: PortMappingsSpec): boolean {
  const { map, key, keyEnd, data } = place, size = isV6Map(map) ? 16 : 4;
  return where === map && isSame(found.key, key) && (keyEnd === undefined || isSame(found.keyEnd, keyEnd)) &&
    isOfContainer(found.comment, containerId) && isSame(found.data!.subarray(size), data.subarray(size));
}

function isV6Map(map: string): boolean {
  return map.endsWith("ipv6") || map.includes("ipv6_");
}

/** The address may still be somebody's who is gone. */
function planSource(
  socket: NetlinkSocket,
  source: Source,
  spec: PortMappingsSpec,
  comment: string,
  isNew: boolean,
): NftMessage[] {
  const { name, size } = source, map = mapOf(name), { bytes: key } = addressOf(spec, size === 4 ? 4 : 6)!;
  const element = createElement(map, { key, comment, counter: name });
  if (isNew || counterUse(socket, table, name) === undefined) {
    return [
      createCounter(table, name),
      createCounterMap(map, size === 4 ? ipv4Key : ipv6Key),
      addRule(postrouting, sourceRule(source)),
      element,
    ];
  }
  const found = getElement(socket, map, key);
  if (found?.comment === comment) return [];
  return found === undefined ? [element] : [delElement(map, key), element];
}

/** Mends what somebody else may have done to the rules. */
function planRules(socket: NetlinkSocket, spec: PortMappingsSpec): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const chain of [prerouting, output]) {
    if (!hasRule(socket, chain, lookup)) messages.push(addRule(chain, lookup));
  }
  for (const family of families) {
    if (addressOf(spec, family) === undefined) continue;
    const scope = scopeOf(spec, family);
    if (!hasScopeRules(socket, scope)) {
      for (const { handle, expressions } of listRules(socket, mapped)) {
        if (looksInto(expressions)?.endsWith(`_${scope.name}`)) messages.push(delRule(mapped, handle));
      }
      messages.push(...scopeRuleMessages(scope));
    }
    for (const source of sourcesOf(spec, family)) {
      const rule = sourceRule(source);
      if (counterUse(socket, table, source.name) !== undefined && !hasRule(socket, postrouting, rule)) {
        messages.push(addRule(postrouting, rule));
      }
    }
  }
  return messages.length === 0 ? [] : [...frame(), ...messages];
}

/** A port of the host is somebody else's. */
function taken({ map, key, mapping }: Place, holder: Element): CniError {
  const { protocol, hostIp } = mapping, at = hostIp === undefined ? "" : `${hostIp}:`;
  const size = isV6Map(map) ? 16 : 4, data = holder.data!;
  const port = Math.max(portOf(key), portOf(holder.key)), address = formatAddress(data.subarray(0, size));
  const behind = data.length > size ? data[size]! << 8 | data[size + 1]! : port;
  return new CniError(
    INTERNAL,
    `host port ${at}${port}/${protocol} is taken by ${ownerText(holder.comment)}`,
    `it leads to ${size === 4 ? address : `[${address}]`}:${behind}; DEL of that attachment frees it`,
  );
}

/** Elements to remove, by the map they are in. */
type Leaving = Map<string, Key[]>;

function planLeaving(leaving: Leaving, except: ReadonlySet<string> = new Set()): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const [map, keys] of leaving) {
    if (except.has(map)) continue;
    for (const key of keys) messages.push(delElement(mapOf(map), key.key, keyEndOf(map, key)));
  }
  return messages;
}

/** Also removes what only they needed. */
function planRemoval(socket: NetlinkSocket, leaving: Leaving): NftMessage[] {
  const unused: string[] = [], maps = new Set<string>();
  let use = TABLE_USE;
  for (const [map, keys] of leaving) {
    const scope = map.startsWith(`${OWNERS}_`) ? map.slice(OWNERS.length + 1) : undefined;
    const counter = scope ?? (map.startsWith("from_") ? map : undefined);
    if (counter === undefined || counterUse(socket, table, counter) !== keys.length) continue;
    unused.push(counter);
    use += scope === undefined ? SOURCE_USE : SCOPE_USE;
    if (scope === undefined) maps.add(map);
    else for (const kind of [OWNERS, PORTS, PORTS_AT, RANGES, RANGES_AT]) maps.add(`${kind}_${scope}`);
  }
  if (unused.length === 0) return planLeaving(leaving);
  if (tableUse(socket, table) === use) return [delTable(table)];
  const rules: NftMessage[] = [];
  for (const chain of [mapped, postrouting]) {
    for (const { handle, expressions } of listRules(socket, chain)) {
      const map = looksInto(expressions) ?? countsIn(expressions);
      if (map !== undefined && maps.has(map)) rules.push(delRule(chain, handle));
    }
  }
  return [
    ...rules,
    ...planLeaving(leaving, maps),
    ...[...maps].map((name) => delSet(mapOf(name))),
    ...unused.map((name) => delCounter(table, name)),
  ];
}

function removeAll(socket: NetlinkSocket, find: () => Leaving): void {
  try {
    commitUnchanged(socket, () => planRemoval(socket, find()));
  } catch (error) {
    // Somebody's own rule looks into our maps, and keeps them.
    if (!isNetlinkError(error, EBUSY)) throw error;
    commitUnchanged(socket, () => planLeaving(find()));
  }
}

/** Looks up what the specification says, and nothing else; restated, whatever the owner has. */
export function remove(socket: NetlinkSocket, spec: PortMappingsSpec): void {
  const comment = ownerComment(spec);
  if (spec.restated) return removeOwners(socket, () => [spec]);
  removeAll(socket, () => {
    const leaving: Leaving = new Map();
    if (tableUse(socket, table) === undefined) return leaving;
    const add = (map: string, element: Element | undefined) => {
      if (element?.comment !== comment) return;
      const keys = leaving.get(map);
      if (keys === undefined) leaving.set(map, [element]);
      else keys.push(element);
    };
    for (const family of families) {
      const address = addressOf(spec, family);
      if (address === undefined) continue;
      const scope = scopeOf(spec, family), places = placesOf(spec, family, scope);
      const contents = new Contents(socket, places.length > MANY);
      for (const { map, key } of places) add(map, contents.at(map, key));
      const owners = inScope(OWNERS, scope);
      add(owners, getElement(socket, mapOf(owners), ownerKey(spec)));
      for (const { name } of sourcesOf(spec, family)) add(name, getElement(socket, mapOf(name), address.bytes));
    }
    return leaving;
  });
}

/** Everything of the owners, known by their comments. Most have nothing, and then the maps are not looked through. */
function removeOwners(socket: NetlinkSocket, find: (ownerMaps: readonly string[]) => Owner[]): void {
  removeAll(socket, () => {
    const leaving: Leaving = new Map(), maps = listSets(socket, table);
    const ownerMaps = maps.filter((map) => map.startsWith(`${OWNERS}_`)), comments = new Set<string>();
    for (const owner of find(ownerMaps)) {
      if (ownerMaps.some((map) => getElement(socket, mapOf(map), ownerKey(owner)))) comments.add(ownerComment(owner));
    }
    if (comments.size === 0) return leaving;
    for (const map of maps) {
      const keys = listElements(socket, mapOf(map)).filter(({ comment }) => comments.has(comment));
      if (keys.length > 0) leaving.set(map, keys);
    }
    return leaving;
  });
}

/** For GC: the mappings of the network's attachments that are not valid. */
export function sweep(socket: NetlinkSocket, network: string, isValid: (owner: Owner) => boolean): void {
  removeOwners(socket, (ownerMaps) => {
    const lost: Owner[] = [];
    for (const map of ownerMaps) {
      for (const { comment } of listElements(socket, mapOf(map))) {
        const owner = ownerIn(comment, network);
        if (owner !== undefined && !isValid(owner)) lost.push(owner);
      }
    }
    return lost;
  });
}

/** One line for each mapping that is not as it should be, and for each rule. */
export function verify(socket: NetlinkSocket, spec: PortMappingsSpec): string[] {
  const comment = ownerComment(spec), differences: string[] = [], of = `of table inet ${table.name}`;
  const missing = (what: string) => differences.push(`${what} ${of} is missing or altered`);
  let isUsed = false;
  for (const family of families) {
    const address = addressOf(spec, family);
    if (address === undefined) continue;
    const scope = scopeOf(spec, family), places = placesOf(spec, family, scope);
    if (places.length === 0) continue;
    isUsed = true;
    const contents = new Contents(socket, places.length > MANY);
    for (const place of places) {
      const { map, key, data, mapping } = place, found = contents.at(map, key);
      if (found !== undefined && leadsToContainer(place, found, map, spec) && found.comment !== comment) continue;
      const what = `host port ${mapping.hostPort}/${mapping.protocol} (map ${map} ${of})`;
      if (found === undefined) differences.push(`${what} is missing`);
      else if (found.comment !== comment) differences.push(`${what} belongs to ${ownerText(found.comment)}`);
      else if (!isSame(found.data, data)) differences.push(`${what} leads elsewhere`);
    }
    if (!hasScopeRules(socket, scope)) missing(`a rule for the maps of ${scope.name}`);
    for (const source of sourcesOf(spec, family)) {
      if (getElement(socket, mapOf(source.name), address.bytes)?.comment !== comment) {
        differences.push(`${formatAddress(address.bytes)} in map ${source.name} ${of} is missing`);
      }
      if (!hasRule(socket, postrouting, sourceRule(source))) missing(`the rule for map ${source.name}`);
    }
  }
  for (const chain of isUsed ? [prerouting, output] : []) {
    if (!hasRule(socket, chain, lookup)) missing(`the rule in chain ${chain.name}`);
  }
  return differences;
}
