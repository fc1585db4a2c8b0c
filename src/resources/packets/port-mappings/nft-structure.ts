/** The chains, maps and rules of the table; nftables.ts shows it. */
import {
  destinationAddress,
  destinationChanged,
  destinationPortInto,
  from,
  ofFamily,
  toThisHost,
  transportProtocolInto,
} from "../../../ffi/netlink/nftables/packet-match.ts";
import type { Chain } from "../../../ffi/netlink/nftables/table.ts";
import { type Expression, registerAt } from "../../../ffi/netlink/nftables/expression.ts";
import { destinationNat, jump, masquerade } from "../../../ffi/netlink/nftables/action.ts";
import { countIn, countsIn, differs, looksInto, outside, valueIn } from "../../../ffi/netlink/nftables/compare.ts";
import {
  type Element,
  getElement,
  ipv4AndPort,
  ipv4Key,
  ipv4ProtocolAndPortKey,
  ipv6AndPort,
  ipv6Key,
  ipv6ProtocolAndPortKey,
  type Key,
  listElements,
  markPairKey,
  protocolAndPortKey,
} from "../../../ffi/netlink/nftables/set.ts";
import { NF_INET_LOCAL_OUT, NF_INET_POST_ROUTING, NF_INET_PRE_ROUTING } from "../../../ffi/netlink/uapi/nf-tables.ts";
import { formatPrefix, networkOf, type Prefix } from "../../../net/address.ts";
import type { Family } from "../../../interop/iptables/rule.ts";
import { type Group, ownTables } from "../shared/own-tables.ts";
import { OwnedTable } from "../shared/owned-table.ts";
import { addressOf, LOOPBACK_6, type PortMappingsSpec } from "./spec.ts";
import { conditionExpressions } from "./conditions.ts";
import { inScope, KINDS, overlaps, OWNERS, PORTS, PORTS_AT, RANGES, RANGES_AT, type Scope } from "./nft-elements.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";

export const table = ownTables["port-mappings"];
const prerouting: Chain = { table, name: "prerouting" };
const output: Chain = { table, name: "output" };
const mapped: Chain = { table, name: "mapped" };
const postrouting: Chain = { table, name: "postrouting" };
/** The usual priority of destination NAT plus one: rules of other programs come first. */
const AFTER_DSTNAT = -99;
const SRCNAT = 100;
/** The names of sources begin with it. */
const SOURCE = "from_";

/** Senders that would not get the answer, unless their packets are masqueraded: one rule, and a map of the containers. */
export interface Source {
  name: string;
  size: 4 | 16;
  from: Prefix | undefined;
}

export const mapOf = (name: string) => ({ table, name });

const loopback: Prefix = { bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 };

export function sourcesOf(spec: PortMappingsSpec, family: Family): Source[] {
  const address = addressOf(spec, family);
  if (address === undefined || spec.masquerade === undefined) return [];
  const size = family === 4 ? 4 : 16;
  if (spec.masquerade === "all") return [{ name: `${SOURCE}any_ipv${family}`, size, from: undefined }];
  const own = { bytes: networkOf(address), bits: address.bits };
  const sources: Source[] = [];
  for (const prefix of family === 4 ? [own, loopback] : [own]) {
    // nft(8) takes no ":" in a name.
    sources.push({ name: `${SOURCE}${formatPrefix(prefix).replaceAll(":", "-")}`, size, from: prefix });
  }
  return sources;
}

/** Leaves the host's own services what is theirs; the kernel takes 127.0.0.0 for no address of the host. */
const sparing = {
  4: [destinationAddress(4), outside(new Uint8Array([127, 0, 0, 2]), new Uint8Array([127, 255, 255, 255]))],
  16: [destinationAddress(16), differs(LOOPBACK_6)],
};

function scopeRules(scope: Scope): Expression[][] {
  const { size, conditions } = scope;
  const rule = (kind: string, withAddress: boolean, withPort: boolean): Expression[] => {
    const words = withAddress ? size / 4 : 0;
    return [
      ...ofFamily(size),
      ...conditions === undefined ? [] : conditionExpressions(conditions),
      ...withAddress ? [destinationAddress(size)] : sparing[size],
      transportProtocolInto(registerAt(words)),
      destinationPortInto(registerAt(words + 1)),
      valueIn(inScope(kind, scope)),
      destinationNat(size, { withPort }),
    ];
  };
  return [
    rule(PORTS_AT, true, true),
    rule(RANGES_AT, true, false),
    rule(PORTS, false, true),
    rule(RANGES, false, false),
  ];
}

function sourceRule({ name, size, from: prefix }: Source): Expression[] {
  return [
    ...destinationChanged,
    ...ofFamily(size),
    ...prefix === undefined ? [] : from(prefix),
    destinationAddress(size),
    countIn(name),
    masquerade,
  ];
}

/** Only packets to this host are looked up in the maps. */
const lookup = [...toThisHost, jump(mapped.name)];

export const owned = new OwnedTable({
  table,
  chains: [
    {
      chain: prerouting,
      hook: { type: "nat", hook: NF_INET_PRE_ROUTING, priority: AFTER_DSTNAT },
      rules: [lookup],
    },
    {
      chain: output,
      hook: { type: "nat", hook: NF_INET_LOCAL_OUT, priority: AFTER_DSTNAT },
      rules: [lookup],
    },
    { chain: postrouting, hook: { type: "nat", hook: NF_INET_POST_ROUTING, priority: SRCNAT } },
    { chain: mapped },
  ],
  groups: {
    maps: (counter) => counter.startsWith(SOURCE) ? [counter] : KINDS.map((kind) => `${kind}_${counter}`),
    ruleChains: [mapped, postrouting],
    mapOfRule: (rule) => looksInto(rule) ?? countsIn(rule),
  },
});

export function scopeGroup(scope: Scope): Group {
  const v4 = scope.size === 4, address = v4 ? ipv4Key : ipv6Key, addressAndPort = v4 ? ipv4AndPort : ipv6AndPort;
  const withAddress = v4 ? ipv4ProtocolAndPortKey : ipv6ProtocolAndPortKey;
  const set = (kind: string) => mapOf(inScope(kind, scope));
  return {
    counter: scope.name,
    maps: [
      { set: set(OWNERS), key: markPairKey, holds: "counters" },
      { set: set(PORTS), key: protocolAndPortKey, holds: addressAndPort },
      { set: set(PORTS_AT), key: withAddress, holds: addressAndPort },
      { set: set(RANGES), key: protocolAndPortKey, holds: address, intervals: true },
      { set: set(RANGES_AT), key: withAddress, holds: address, intervals: true },
    ],
    rules: {
      chain: mapped,
      rules: scopeRules(scope),
      // Mappings with conditions come before those without.
      first: scope.conditions !== undefined,
      replaces: (rule) => looksInto(rule)?.endsWith(`_${scope.name}`) === true,
    },
  };
}

export function sourceGroup(source: Source): Group {
  const { name, size } = source;
  return {
    counter: name,
    maps: [{ set: mapOf(name), key: size === 4 ? ipv4Key : ipv6Key, holds: "counters" }],
    rules: { chain: postrouting, rules: [sourceRule(source)], replaces: (rule) => countsIn(rule) === name },
  };
}

/** From this number of questions on, listing is faster. */
const MANY = 65;

/** What the maps hold: asked for element by element, or listed once where many are asked for. */
export class Contents {
  private readonly lists = new Map<string, Element[]>();
  private readonly byKey = new Map<string, Map<string, Element>>();

  constructor(private readonly socket: NetlinkSocket, private readonly questions: number) {}

  list(map: string): Element[] {
    return this.lists.getOrInsertComputed(map, () => listElements(this.socket, mapOf(map)));
  }

  /** The element with this key, or whose interval holds it. */
  at(map: string, key: Uint8Array): Element | undefined {
    if (this.questions < MANY) return getElement(this.socket, mapOf(map), key);
    if (map.startsWith(RANGES)) return this.list(map).find((element) => overlaps(element, { key }));
    const indexed = () => new Map(this.list(map).map((element) => [element.key.toHex(), element]));
    return this.byKey.getOrInsertComputed(map, indexed).get(key.toHex());
  }

  /** The elements of the map that have a port in common with the place. */
  overlapping(map: string, place: Key): Element[] {
    if (place.keyEnd !== undefined) return this.list(map).filter((element) => overlaps(element, place));
    const element = this.at(map, place.key);
    return element === undefined ? [] : [element];
  }
}
