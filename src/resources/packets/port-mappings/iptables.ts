/**
 * The rules of the reference plugin's iptables backend, in the table nat of each family that has an address:
 *
 *     -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT                               # and in OUTPUT
 *     -A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ   # the first there
 *     -A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
 *     -A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
 *     -A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"N\" id: \"C\"" -m multiport --dports 8080,… -j CNI-DN-…
 *     -A CNI-DN-… -s 10.88.0.0/16 -d 127.0.0.1/32 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
 *     -A CNI-DN-… -s 127.0.0.1/32 -d 127.0.0.1/32 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
 *     -A CNI-DN-… -d 127.0.0.1/32 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.5:80
 *     -A CNI-DN-… -d 127.0.0.0/8 -p tcp -m tcp --dport 8080 -j RETURN
 *     -A CNI-DN-… -s 10.88.0.0/16 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
 *     -A CNI-DN-… -s 127.0.0.1/32 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
 *     -A CNI-DN-… -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.5:80
 *
 * The first four are not the reference plugin's: of 127.0.0.0/8, mappings of all addresses take 127.0.0.1 alone. The host's
 * own services have the others, such as its resolver at 127.0.0.53. For IPv6 there is a RETURN for ::1 in their place.
 *
 * The chains that all containers share stay, as the reference plugin leaves them. The container's chain is not named after
 * the interface: a container attached twice to one network has one chain. The owner of a rule is stored with it where
 * iptables does not show it, so the first attachment that is removed leaves the other its rules. The older kernel tables
 * have no room for owners: there the rules of both are removed.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import type { Host } from "../../../contract/host.ts";
import { FAMILIES, type Family, type IptablesRule, type Protocol, toolOf } from "../../../interop/iptables/rule.ts";
import { changeEveryTable, changeTable, readTable } from "../../../interop/iptables/host-tables.ts";
import {
  type IptablesTable,
  isAmong,
  missingAmong,
  type PresentRule,
  type TableChange,
} from "../../../interop/iptables/table.ts";
import { ruleText } from "../../../interop/iptables/text-rule.ts";
import { fromUtf8, utf8 } from "../../../ffi/libc.ts";
import { MULTIPORT_LIMIT } from "../../../ffi/netlink/nftables/extension.ts";
import type { Prefix } from "../../../net/address.ts";
import { type Backend, obstacles } from "../shared/backend.ts";
import {
  addShared,
  containerChain,
  containerComment,
  explainingEnoent,
  type Named,
  namedIn,
  type SharedRule,
} from "../shared/iptables-chains.ts";
import { netfilterOf } from "../shared/netfilter-socket.ts";
import { ownerComment } from "../shared/owner-comment.ts";
import {
  addressOf,
  appliesTo,
  type Conditions,
  DNAT,
  hostAddress,
  isAllowed,
  isAmongAll,
  LOOPBACK_6,
  MASQ,
  type PortMapping,
  type PortMappingsSpec,
  SETMARK,
  sharedMappingChains,
} from "./spec.ts";
import { conditionMatches } from "./conditions.ts";

export const CHAIN = "CNI-DN-";
/** The reference plugin before 0.7.0 made this chain. */
const SNAT = "CNI-HOSTPORT-SNAT";
const COMMENT_LIMIT_BYTES = 255;

export function chainName(named: Named, start = CHAIN): string {
  return containerChain(start, named);
}

function commentOf(spec: Named): string {
  const full = utf8(`dnat ${containerComment(spec)}`);
  if (full.length <= COMMENT_LIMIT_BYTES) return fromUtf8(full);
  return `${fromUtf8(full.subarray(0, COMMENT_LIMIT_BYTES - 3))}...`;
}

const toLocal: IptablesRule = { toLocal: true, target: { jump: DNAT } };
const toMasquerade: IptablesRule = { comment: "CNI portfwd requiring masquerade", target: { jump: MASQ } };
const localhost: Prefix = { bytes: new Uint8Array([127, 0, 0, 1]), bits: 32 };
const loopback: Prefix = { bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 };
const loopback6: Prefix = { bytes: LOOPBACK_6, bits: 128 };

function sharedOf({ masquerade, setMarkChain, markBit }: PortMappingsSpec): SharedRule[] {
  const lookup = [{ chain: "PREROUTING", rule: toLocal }, { chain: "OUTPUT", rule: toLocal }];
  if (masquerade === undefined || setMarkChain !== undefined) return lookup;
  const bit = (1 << markBit) >>> 0, mark = { value: bit, mask: bit };
  return [
    { chain: SETMARK, rule: { comment: "CNI portfwd masquerade mark", target: { setMark: mark } } },
    { chain: MASQ, rule: { mark, target: "MASQUERADE" } },
    // Chains that masquerade for bridges accept some packets before they reach the end of POSTROUTING.
    { chain: "POSTROUTING", rule: toMasquerade, first: true },
    ...lookup,
  ];
}

/** The rules in the container's chain. */
function rulesOf(spec: PortMappingsSpec, family: Family): IptablesRule[] {
  const ofOthers: IptablesRule[] = [], rules: IptablesRule[] = [];
  for (const mapping of spec.mappings) {
    if (!appliesTo(spec, mapping, family)) continue;
    const at = hostAddress(mapping);
    if (at !== undefined) {
      const own = mappingRules(spec, mapping, family, { bytes: at, bits: at.length * 8 });
      (spec.sparesLoopback && !isAmongAll(at) ? ofOthers : rules).push(...own);
      continue;
    }
    if (spec.sparesLoopback) {
      const { protocol, hostPort: destinationPort } = mapping, prefix = family === 4 ? loopback : loopback6;
      if (family === 4) rules.push(...mappingRules(spec, mapping, family, localhost));
      rules.push({ protocol, destinationPort, destination: { prefix }, target: "RETURN" });
    }
    rules.push(...mappingRules(spec, mapping, family, undefined));
  }
  // Behind the RETURN of the same port, nobody would meet them.
  return [...ofOthers, ...rules];
}

function mappingRules(
  spec: PortMappingsSpec,
  { protocol, hostPort, containerPort }: PortMapping,
  family: Family,
  destination: Prefix | undefined,
): IptablesRule[] {
  const { masquerade, setMarkChain = SETMARK } = spec, { bytes, bits } = addressOf(spec, family)!;
  const rules: IptablesRule[] = [];
  const match: Omit<IptablesRule, "target"> = {
    protocol,
    destinationPort: hostPort,
    destination: destination && { prefix: destination },
  };
  const mark = (source?: Prefix) =>
    rules.push({ ...match, source: source && { prefix: source }, target: { jump: setMarkChain } });
  if (masquerade === "all") mark();
  if (masquerade === "own") {
    mark({ bytes, bits });
    if (family === 4) mark(localhost);
  }
  rules.push({ ...match, target: { dnat: { address: bytes, port: containerPort } } });
  return rules;
}

/** The rules that lead to the container's chain. One rule takes up to MULTIPORT_LIMIT ports. */
function entriesOf(spec: PortMappingsSpec, family: Family): IptablesRule[] {
  const conditions = spec.conditions?.[family], entries: IptablesRule[] = [];
  for (const protocol of ["sctp", "tcp", "udp"] as const) {
    const ports = portsOf(spec, protocol, conditions);
    for (let at = 0; at < ports.length; at += MULTIPORT_LIMIT) {
      entries.push({
        ...conditions && conditionMatches(conditions),
        protocol,
        comment: commentOf(spec),
        destinationPorts: ports.slice(at, at + MULTIPORT_LIMIT),
        target: { jump: chainName(spec) },
      });
    }
  }
  return entries;
}

/** The ports of both families, as by the reference plugin. */
function portsOf({ mappings }: PortMappingsSpec, protocol: Protocol, conditions: Conditions | undefined): number[] {
  const ports: number[] = [];
  for (const mapping of mappings) {
    if (mapping.protocol === protocol && isAllowed(conditions, mapping)) ports.push(mapping.hostPort);
  }
  return ports;
}

function familiesOf(spec: PortMappingsSpec): Family[] {
  return FAMILIES.filter((family) => addressOf(spec, family) !== undefined);
}

/** POSTROUTING may be long where bridges masquerade: the jump in it is found without listing the chain. */
function sharedIn(table: IptablesTable, chain: string): readonly PresentRule[] {
  return chain === "POSTROUTING" ? table.jumps(chain, MASQ) : table.rules(chain);
}

/** The order decides which rule a packet meets first: if anything differs, all rules are written again. */
function addOwn(table: TableChange, spec: PortMappingsSpec): void {
  const chain = chainName(spec), owner = ownerComment(spec);
  const rules = rulesOf(spec, table.family), entries = entriesOf(spec, table.family);
  if (!table.hasChain(chain)) {
    table.createChain(chain);
  } else {
    const all = table.rules(chain),
      own = all.filter(isOf(owner)),
      jumps = table.jumps(DNAT, chain).filter(isOf(owner));
    if (areSame(rules, own) && areSame(entries, jumps)) return;
    if (own.length === all.length) table.flush(chain);
    else for (const found of own) table.delete(found);
    for (const found of jumps) table.delete(found);
  }
  for (const rule of rules) table.append(chain, rule, owner);
  for (const rule of entries) table.append(DNAT, rule, owner);
}

/** A rule without an owner may be ours: written by the reference plugin, or restored from a file. */
function isOf(owner: string): (rule: PresentRule) => boolean {
  return (rule) => rule.owner === undefined || rule.owner === owner;
}

function areSame(wanted: readonly IptablesRule[], found: readonly PresentRule[]): boolean {
  return wanted.length === found.length && wanted.every((rule, index) => found[index]!.is(rule));
}

function removeChain(table: TableChange, entrance: string, chain: string, owner: string): void {
  if (!table.hasChain(chain)) return;
  const rules = table.rules(chain), own = rules.filter(isOf(owner));
  for (const jump of table.jumps(entrance, chain)) if (isOf(owner)(jump)) table.delete(jump);
  if (own.length === rules.length) table.deleteChain(chain);
  else for (const rule of own) table.delete(rule);
}

function verifyFamily(spec: PortMappingsSpec, host: Host, family: Family): string[] {
  const differences: string[] = [], chain = chainName(spec);
  const table = readTable(host, "nat", family), tool = toolOf(family);
  if (!table.hasChain(chain)) return [`chain ${chain} not found in ${tool} table nat`];
  const missing = (where: string, rule: IptablesRule) =>
    differences.push(`${tool} rule -A ${where} ${ruleText(rule)} not found in table nat`);
  for (const rule of missingAmong(table.rules(chain), rulesOf(spec, family))) missing(chain, rule);
  for (const rule of missingAmong(table.jumps(DNAT, chain), entriesOf(spec, family))) missing(DNAT, rule);
  for (const { chain: where, rule } of sharedOf(spec)) {
    if (!table.hasChain(where) || !isAmong(rule, sharedIn(table, where))) missing(where, rule);
  }
  return differences;
}

/** The first of the families in which the chain that others are to make is missing. */
function lacksChain(host: Host, chain: string, families: readonly Family[]): Family | undefined {
  for (const family of families) if (!readTable(host, "nat", family).hasChain(chain)) return family;
  return undefined;
}

function requireMarkChain(spec: PortMappingsSpec, host: Host): void {
  const external = spec.masquerade && spec.setMarkChain;
  const lacking = external ? lacksChain(host, external, familiesOf(spec)) : undefined;
  if (lacking !== undefined) throw missingChain(external!, lacking);
}

function missingChain(chain: string, family: Family): CniError {
  return new CniError(INTERNAL, `externalSetMarkChain "${chain}" is not in the table nat of ${toolOf(family)}`);
}

const MODULES = "xt_comment, xt_addrtype, xt_multiport, xt_mark, xt_nat or xt_MASQUERADE";

export const backend: Backend<PortMappingsSpec> = {
  apply(spec, host) {
    const families = familiesOf(spec);
    // Before any family is changed: the older tables are changed one family after the other.
    requireMarkChain(spec, host);
    const shared = sharedOf(spec);
    const change = () =>
      changeTable(host, "nat", families, (table) => {
        addShared(table, sharedMappingChains(spec), shared, (chain) => sharedIn(table, chain));
        addOwn(table, spec);
      });
    return explainingEnoent("portmap by iptables", MODULES, '"backend": "nftables"', change);
  },
  judge: requireMarkChain,
  verify: (spec, host) => familiesOf(spec).flatMap((family) => verifyFamily(spec, host, family)),
  remove(spec, host, isRestated) {
    const owner = ownerComment(spec), families = isRestated ? FAMILIES : familiesOf(spec);
    changeEveryTable(netfilterOf(host), "nat", families, isRestated, (table) => {
      removeChain(table, DNAT, chainName(spec), owner);
      if (isRestated) removeChain(table, SNAT, chainName(spec, "CNI-SN-"), owner);
    });
  },
  sweep(network, isValid, host) {
    changeEveryTable(netfilterOf(host), "nat", FAMILIES, true, (table) => {
      const lost = new Set<string>();
      for (const rule of table.rules(DNAT)) {
        const named = namedIn(CHAIN, rule.comment, rule.leadsTo);
        if (named?.network === network && !isValid(named)) lost.add(rule.leadsTo!);
      }
      for (const rule of table.rules(DNAT)) if (lost.has(rule.leadsTo ?? "")) table.delete(rule);
      for (const chain of lost) if (table.hasChain(chain)) table.deleteChain(chain);
    });
  },
  obstacle(spec, host) {
    const rules = [...sharedOf(spec).map(({ rule }) => rule), ...rulesOf(spec, 4), ...entriesOf(spec, 4)];
    const { setMarkChain } = spec, obstacle = obstacles().obstacleToIptables(host, rules);
    if (obstacle !== undefined || !setMarkChain) return obstacle;
    const family = lacksChain(host, setMarkChain, FAMILIES);
    return family && missingChain(setMarkChain, family).message;
  },
};
