/**
 * Port mappings in a table of our own, see owned-table.ts. A mapping is an element of a map, so a port has one owner.
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
 *         ip daddr != 127.0.0.2-127.255.255.255 dnat ip to meta l4proto . th dport map @ports_ipv4
 *         ip daddr != 127.0.0.2-127.255.255.255 dnat ip to meta l4proto . th dport map @ranges_ipv4
 *         ip6 daddr != ::1 dnat ip6 to meta l4proto . th dport map @ports_ipv6      and as above
 *       }
 *       chain postrouting {
 *         type nat hook postrouting priority srcnat;
 *         ct status dnat ip saddr 10.88.0.0/16 counter name ip daddr map @from_10.88.0.0/16 masquerade
 *       }
 *     }
 *
 * Only packets to this host itself are looked up (CVE-2025-67499), after the rules of other programs at the usual priority
 * (CVE-2019-9946). A mapping of one host address wins over one of all. All addresses are neither ::1 nor those of
 * 127.0.0.0/8 but 127.0.0.1: the host's own services have the others, such as its resolver at 127.0.0.53. Mappings with
 * conditions have maps of their own, which are looked up before the others.
 *
 * A long run of ports that keep their number is one element of an interval map; a short run is not, because the kernel
 * copies such a map whenever it changes.
 */
import type { FoundElement, Group } from "../shared/own-tables.ts";
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { commitUnchanged } from "../../../ffi/netlink/nftables/batch.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import {
  createElement,
  delElement,
  type Element,
  getElement,
  listElements,
  listSets,
} from "../../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import { FAMILIES } from "../../../interop/iptables/rule.ts";
import { formatAddress } from "../../../net/address.ts";
import type { Owner } from "../../../contract/owner.ts";
import { type Backend, obstacles } from "../shared/backend.ts";
import { netfilterOf } from "../shared/netfilter-socket.ts";
import { isOfContainer, ownerComment, ownerIn, ownerInComment, ownerKey } from "../shared/owner-comment.ts";
import { Contents, mapOf, owned, scopeGroup, type Source, sourceGroup, sourcesOf, table } from "./nft-structure.ts";
import {
  inScope,
  isSame,
  isV6Map,
  OWNERS,
  placesOf,
  portOf,
  type PortPlace,
  PORTS,
  RANGES,
  type Scope,
  scopeOf,
} from "./nft-elements.ts";
import { addressOf, type PortMappingsSpec } from "./spec.ts";

/** What the mappings of one family need. */
interface FamilyMappings {
  address: Uint8Array;
  scope: Scope;
  places: PortPlace[];
  sources: Source[];
}

/** A part for each family that has an address and mappings. */
function partsOf(spec: PortMappingsSpec): FamilyMappings[] {
  const parts: FamilyMappings[] = [];
  for (const family of FAMILIES) {
    const address = addressOf(spec, family)?.bytes;
    if (address === undefined) continue;
    const scope = scopeOf(spec, family), places = placesOf(spec, family, scope);
    if (places.length > 0) parts.push({ address, scope, places, sources: sourcesOf(spec, family) });
  }
  return parts;
}

function planApply(socket: NetlinkSocket, spec: PortMappingsSpec): NftMessage[] {
  const comment = ownerComment(spec), owner = ownerKey(spec), isNew = !owned.exists(socket);
  const messages: NftMessage[] = [], present: Group[] = [];
  let isMended = false;
  /** Makes the group unless it is there. Returns whether it was. */
  const wasThere = (group: Group) => {
    const isThere = !isNew && owned.counterUse(socket, group.counter) !== undefined;
    if (isThere) present.push(group);
    else messages.push(...owned.create(group));
    return isThere;
  };
  for (const { address, scope, places, sources } of partsOf(spec)) {
    const owners = mapOf(inScope(OWNERS, scope)), member = { key: owner, comment, counter: scope.name };
    if (wasThere(scopeGroup(scope))) {
      messages.push(...planPlaces(new Contents(socket, places.length), places, spec));
      if (getElement(socket, owners, owner) === undefined) messages.push(createElement(owners, member));
      else isMended = true;
    } else {
      for (const { map, key, keyEnd, data } of places) {
        messages.push(createElement(mapOf(map), { key, keyEnd, data, comment }));
      }
      messages.push(createElement(owners, member));
    }
    for (const source of sources) {
      const set = mapOf(source.name), element = { key: address, comment, counter: source.name };
      // The address may still be a former owner's.
      if (wasThere(sourceGroup(source))) messages.push(...owned.put(socket, set, element));
      else messages.push(createElement(set, element));
    }
  }
  if (isNew && messages.length > 0) return [...owned.frame(), ...messages];
  return isMended ? [...messages, ...owned.mend(socket, present)] : messages;
}

/** Throws where a port is another owner's. Elements of this owner that are in the way are replaced. */
function planPlaces(contents: Contents, places: PortPlace[], spec: PortMappingsSpec): NftMessage[] {
  const comment = ownerComment(spec);
  const deletions: NftMessage[] = [], creations: NftMessage[] = [], replaced = new Set<string>();
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
        // The parts of what was one run may each find it.
        const name = `${where} ${found.key.toHex()}`;
        if (isThere || replaced.has(name)) continue;
        replaced.add(name);
        deletions.push(delElement(mapOf(where), found.key, found.keyEnd));
      }
    }
    if (!isThere) creations.push(createElement(mapOf(map), { key, keyEnd, data, comment }));
  }
  return [...deletions, ...creations];
}

/**
 * Runtimes ask every network of a container for the same ports. The first network has them; for the others it is enough
 * that the same mapping is there, whichever of the container's addresses it leads to.
 */
function leadsToContainer(
  place: PortPlace,
  found: Element,
  where: string,
  { containerId }: PortMappingsSpec,
): boolean {
  const { map, key, keyEnd, data } = place, size = isV6Map(map) ? 16 : 4;
  return where === map && isSame(found.key, key) && (keyEnd === undefined || isSame(found.keyEnd, keyEnd)) &&
    isOfContainer(found.comment, containerId) && isSame(found.data!.subarray(size), data.subarray(size));
}

/** The error for a port that another owner has. */
function taken({ map, key, mapping }: PortPlace, holder: Element): CniError {
  const { protocol, hostIp } = mapping, size = isV6Map(map) ? 16 : 4, data = holder.data!;
  const bracketed = (ip: string) => size === 4 ? ip : `[${ip}]`,
    at = hostIp === undefined ? "" : `${bracketed(hostIp)}:`;
  const port = Math.max(portOf(key), portOf(holder.key)), address = formatAddress(data.subarray(0, size));
  const behind = data.length > size ? data[size]! << 8 | data[size + 1]! : port;
  return new CniError(
    INTERNAL,
    `host port ${at}${port}/${protocol} is taken by ${ownerInComment(holder.comment)}`,
    `it leads to ${bracketed(address)}:${behind}; DEL of that attachment frees it`,
  );
}

/** The elements that the specification describes, and no others. */
function listDescribed(socket: NetlinkSocket, spec: PortMappingsSpec): FoundElement[] {
  const owner = ownerComment(spec), held: FoundElement[] = [];
  if (!owned.exists(socket)) return held;
  for (const { address, scope, places, sources } of partsOf(spec)) {
    const contents = new Contents(socket, places.length);
    for (const { map, key } of places) {
      const element = contents.at(map, key);
      if (element?.comment === owner) held.push({ ...element, set: mapOf(map) });
    }
    const counted = [
      { set: mapOf(inScope(OWNERS, scope)), key: ownerKey(spec) },
      ...sources.map(({ name }) => ({ set: mapOf(name), key: address })),
    ];
    held.push(...owned.find(socket, counted, owner));
  }
  return held;
}

/** All elements of the owners, known by their comments. Most owners have none, and then the maps are not listed. */
function listOwned(socket: NetlinkSocket, find: (ownerMaps: readonly string[]) => Owner[]): FoundElement[] {
  const maps = listSets(socket, table), comments = new Set<string>();
  const ownerMaps = maps.filter((map) => map.startsWith(`${OWNERS}_`));
  for (const owner of find(ownerMaps)) {
    if (ownerMaps.some((map) => getElement(socket, mapOf(map), ownerKey(owner)))) comments.add(ownerComment(owner));
  }
  return comments.size === 0 ? [] : owned.findWhere(socket, maps.map(mapOf), (comment) => comments.has(comment));
}

function verifyPlaces(socket: NetlinkSocket, places: readonly PortPlace[], spec: PortMappingsSpec): string[] {
  const owner = ownerComment(spec), contents = new Contents(socket, places.length), differences: string[] = [];
  for (const place of places) {
    const { map, key, data, mapping } = place, found = contents.at(map, key);
    if (found !== undefined && leadsToContainer(place, found, map, spec) && found.comment !== owner) continue;
    const what = `host port ${mapping.hostPort}/${mapping.protocol} (map ${map} of table ${owned.name})`;
    if (found === undefined) differences.push(`${what} is missing`);
    else if (found.comment !== owner) differences.push(`${what} belongs to ${ownerInComment(found.comment)}`);
    else if (!isSame(found.data, data)) differences.push(`${what} leads elsewhere`);
  }
  return differences;
}

export const backend: Backend<PortMappingsSpec> = {
  onlyNfTables: true,
  apply: (spec, { netfilter }) => commitUnchanged(netfilter, () => planApply(netfilter, spec)),
  verify(spec, { netfilter }) {
    const comment = ownerComment(spec), differences: string[] = [], groups: Group[] = [];
    for (const { address, scope, places, sources } of partsOf(spec)) {
      differences.push(...verifyPlaces(netfilter, places, spec));
      groups.push(scopeGroup(scope), ...sources.map(sourceGroup));
      for (const { name } of sources) {
        const what = `${formatAddress(address)} in map ${name} of table ${owned.name}`;
        differences.push(
          ...owned.verifyElement(netfilter, mapOf(name), { key: address, comment, counter: name }, what),
        );
      }
    }
    return groups.length === 0 ? [] : [...differences, ...owned.verifyRules(netfilter, groups)];
  },
  remove(spec, { netfilter }, isRestated) {
    owned.remove(netfilter, () => isRestated ? listOwned(netfilter, () => [spec]) : listDescribed(netfilter, spec));
  },
  sweep(network, isValid, { netfilter }) {
    owned.remove(netfilter, () =>
      listOwned(netfilter, (ownerMaps) => {
        const lost: Owner[] = [];
        for (const map of ownerMaps) {
          for (const { comment } of listElements(netfilter, mapOf(map))) {
            const owner = ownerIn(comment, network);
            if (owner !== undefined && !isValid(owner)) lost.push(owner);
          }
        }
        return lost;
      }));
  },
  judge: (spec, host) => {
    const netfilter = netfilterOf(host);
    if (netfilter !== undefined) planApply(netfilter, spec);
  },
  obstacle: (spec, host) => obstacles().obstacleToNftables(host, table, (socket) => planApply(socket, spec)),
};
