/** The chains, maps and rules that mappings need; see nftables.ts for the whole. */
import { from } from "../../../ffi/netlink/nftables/address-match.ts";
import { addBaseChain, type Chain } from "../../../ffi/netlink/nftables/chain.ts";
import { equals } from "../../../ffi/netlink/nftables/expr/cmp.ts";
import { destinationChanged } from "../../../ffi/netlink/nftables/expr/ct.ts";
import { type Expression, isSameRule } from "../../../ffi/netlink/nftables/expr/expression.ts";
import { toThisHost } from "../../../ffi/netlink/nftables/expr/fib.ts";
import { jump } from "../../../ffi/netlink/nftables/expr/immediate.ts";
import { looksInto, valueIn } from "../../../ffi/netlink/nftables/expr/lookup.ts";
import { masquerade } from "../../../ffi/netlink/nftables/expr/masq.ts";
import { protocolFamily, transportProtocolInto } from "../../../ffi/netlink/nftables/expr/meta.ts";
import { destinationNat } from "../../../ffi/netlink/nftables/expr/nat.ts";
import { countIn } from "../../../ffi/netlink/nftables/expr/objref.ts";
import { destinationAddress, destinationPortInto } from "../../../ffi/netlink/nftables/expr/payload.ts";
import { registerAt } from "../../../ffi/netlink/nftables/expr/register.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import { createCounter } from "../../../ffi/netlink/nftables/object.ts";
import { addRule, insertRule, listRules } from "../../../ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createIntervalMap,
  createMap,
  ipv4AndPort,
  ipv4Key,
  ipv4ProtocolAndPortKey,
  ipv6AndPort,
  ipv6Key,
  ipv6ProtocolAndPortKey,
  markPairKey,
  protocolAndPortKey,
} from "../../../ffi/netlink/nftables/set.ts";
import { addTable } from "../../../ffi/netlink/nftables/table.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import {
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
  NFPROTO_INET,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
} from "../../../ffi/netlink/uapi/nf-tables.ts";
import { formatPrefix, networkOf, type Prefix } from "../../../net/address.ts";
import { addressOf, type PortMappingsSpec } from "./port-mappings.ts";
import { conditionExpressions } from "./conditions.ts";
import { inScope, OWNERS, PORTS, PORTS_AT, RANGES, RANGES_AT, type Scope } from "./nft-elements.ts";

export const table = { family: NFPROTO_INET, name: "patchbay_portmap" };
export const prerouting: Chain = { table, name: "prerouting" };
export const output: Chain = { table, name: "output" };
export const mapped: Chain = { table, name: "mapped" };
export const postrouting: Chain = { table, name: "postrouting" };
/** The usual priority of destination NAT, and one more: others come first. */
const AFTER_DSTNAT = -99;
const SRCNAT = 100;
/** In the table besides what each scope and source has: the chains. */
export const TABLE_USE = 4;
/** A scope's five maps and counter, a source's map and counter. */
export const SCOPE_USE = 6, SOURCE_USE = 2;

/** Where packets to containers come from that would not get the answer: one rule, and a map of the containers. */
export interface Source {
  name: string;
  size: 4 | 16;
  from: Prefix | undefined;
}

export const mapOf = (name: string) => ({ table, name });

function ofFamily(size: number): Expression[] {
  return [protocolFamily, equals(new Uint8Array([size === 4 ? NFPROTO_IPV4 : NFPROTO_IPV6]))];
}

const loopback: Prefix = { bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 };

export function sourcesOf(spec: PortMappingsSpec, family: 4 | 6): Source[] {
  const address = addressOf(spec, family);
  if (address === undefined || spec.masquerade === undefined) return [];
  const size = family === 4 ? 4 : 16;
  if (spec.masquerade === "all") return [{ name: `from_any_ipv${family}`, size, from: undefined }];
  const own = { bytes: networkOf(address), bits: address.bits };
  const sources: Source[] = [];
  for (const prefix of family === 4 ? [own, loopback] : [own]) {
    // nft(8) takes no ":" in a name.
    sources.push({ name: `from_${formatPrefix(prefix).replaceAll(":", "-")}`, size, from: prefix });
  }
  return sources;
}

function scopeRules(scope: Scope): Expression[][] {
  const { size, conditions } = scope;
  const rule = (kind: string, withAddress: boolean, withPort: boolean): Expression[] => {
    const words = withAddress ? size / 4 : 0;
    return [
      ...ofFamily(size),
      ...conditions === undefined ? [] : conditionExpressions(conditions),
      ...withAddress ? [destinationAddress(size)] : [],
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

export function sourceRule({ name, size, from: prefix }: Source): Expression[] {
  return [
    ...destinationChanged,
    ...ofFamily(size),
    ...prefix === undefined ? [] : from(prefix),
    destinationAddress(size),
    countIn(name),
    masquerade,
  ];
}

/** Into the maps goes only what is sent to this host. */
export const lookup = [...toThisHost, jump(mapped.name)];

/** What the first mapping needs; there or not. */
export function frame(): NftMessage[] {
  return [
    addTable(table, "Patchbay: ports of the host that lead to containers"),
    addBaseChain(prerouting, { type: "nat", hook: NF_INET_PRE_ROUTING, priority: AFTER_DSTNAT }),
    addBaseChain(output, { type: "nat", hook: NF_INET_LOCAL_OUT, priority: AFTER_DSTNAT }),
    addBaseChain(postrouting, { type: "nat", hook: NF_INET_POST_ROUTING, priority: SRCNAT }),
  ];
}

export function scopeMaps(scope: Scope): NftMessage[] {
  const v4 = scope.size === 4, address = v4 ? ipv4Key : ipv6Key, addressAndPort = v4 ? ipv4AndPort : ipv6AndPort;
  const withAddress = v4 ? ipv4ProtocolAndPortKey : ipv6ProtocolAndPortKey;
  const map = (kind: string) => mapOf(inScope(kind, scope));
  return [
    createCounter(table, scope.name),
    createCounterMap(map(OWNERS), markPairKey),
    createMap(map(PORTS), protocolAndPortKey, addressAndPort),
    createMap(map(PORTS_AT), withAddress, addressAndPort),
    createIntervalMap(map(RANGES), protocolAndPortKey, address),
    createIntervalMap(map(RANGES_AT), withAddress, address),
  ];
}

/** Those with conditions come before the others. */
export function scopeRuleMessages(scope: Scope): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const rule of scopeRules(scope)) {
    if (scope.conditions === undefined) messages.push(addRule(mapped, rule));
    else messages.unshift(insertRule(mapped, rule));
  }
  return messages;
}

export function hasRule(socket: NetlinkSocket, chain: Chain, rule: Expression[]): boolean {
  return listRules(socket, chain).some(({ expressions }) => isSameRule(rule, expressions));
}

export function hasScopeRules(socket: NetlinkSocket, scope: Scope): boolean {
  const wanted = scopeRules(scope);
  const present = listRules(socket, mapped).filter(({ expressions }) =>
    looksInto(expressions)?.endsWith(`_${scope.name}`)
  );
  return wanted.length === present.length &&
    wanted.every((rule, index) => isSameRule(rule, present[index]!.expressions));
}
