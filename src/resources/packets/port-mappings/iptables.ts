/**
 * The rules of the reference plugin's iptables backend, in the table nat of each family that has an address:
 *
 *     -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT                               # and in OUTPUT
 *     -A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ   # the first there
 *     -A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
 *     -A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
 *     -A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \"N\" id: \"C\"" -m multiport --dports 8080,… -j CNI-DN-…
 *     -A CNI-DN-… -s 10.88.0.0/16 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
 *     -A CNI-DN-… -s 127.0.0.1/32 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK
 *     -A CNI-DN-… -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.5:80
 *
 * The chains of everybody stay, as the reference plugin leaves them. The interface is not in a name: a container attached
 * twice to one network has one chain. Whose a rule in it is stands beside it where iptables does not look, so the first
 * of the two to go leaves the other its rules; in the older kernel tables, which have no such place, both go.
 */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { ENOENT } from "../../../ffi/errno.ts";
import type { Family, Protocol, Rule } from "../../../iptables/rule.ts";
import { changeEveryTable, changeTable, type NetfilterHost, readTable } from "../../../iptables/host-tables.ts";
import { type FoundRule, isAmong, missingAmong, type Table, type TableChange } from "../../../iptables/table.ts";
import { ruleText } from "../../../iptables/text-rule.ts";
import { fromUtf8, utf8 } from "../../../ffi/libc.ts";
import { MULTIPORT_LIMIT } from "../../../ffi/netlink/nftables/expr/match.ts";
import { isNetlinkError, type NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import type { Prefix } from "../../../net/address.ts";
import { ownerComment } from "../owner-comment.ts";
import {
  addressOf,
  appliesTo,
  type Conditions,
  hostAddress,
  isAllowed,
  type PortMappingsSpec,
} from "./port-mappings.ts";
import { conditionMatches } from "./conditions.ts";

const DNAT = "CNI-HOSTPORT-DNAT", MASQ = "CNI-HOSTPORT-MASQ", SETMARK = "CNI-HOSTPORT-SETMARK";
/** Of the reference plugin before 0.7.0. */
const SNAT = "CNI-HOSTPORT-SNAT";
const COMMENT_LIMIT_BYTES = 255;

interface Named {
  network: string;
  containerId: string;
}

/** Network and container in SHA-512, as the reference plugin cuts it: 28 characters in all. */
export function chainName({ network, containerId }: Named, start = "CNI-DN-"): string {
  return start +
    new Bun.CryptoHasher("sha512").update(network + containerId).digest("hex").slice(0, 28 - start.length);
}

function commentOf({ network, containerId }: Named): string {
  // Go's %q of both; CNI allows nothing in them that it would escape.
  const whole = utf8(`dnat name: "${network}" id: "${containerId}"`);
  if (whole.length <= COMMENT_LIMIT_BYTES) return fromUtf8(whole);
  return `${fromUtf8(whole.subarray(0, COMMENT_LIMIT_BYTES - 3))}...`;
}

const toLocal: Rule = { toLocal: true, target: { jump: DNAT } };
const toMasquerade: Rule = { comment: "CNI portfwd requiring masquerade", target: { jump: MASQ } };
const localhost: Prefix = { bytes: new Uint8Array([127, 0, 0, 1]), bits: 32 };

/** What everybody uses, with the chain the rule is in, and whether it comes first there. */
function sharedOf(
  { masquerade, setMarkChain, markBit }: PortMappingsSpec,
): { chain: string; rule: Rule; first?: true }[] {
  const lookup = [{ chain: "PREROUTING", rule: toLocal }, { chain: "OUTPUT", rule: toLocal }];
  if (masquerade === undefined || setMarkChain !== undefined) return lookup;
  const bit = (1 << markBit) >>> 0, mark = { value: bit, mask: bit };
  return [
    { chain: SETMARK, rule: { comment: "CNI portfwd masquerade mark", target: { setMark: mark } } },
    { chain: MASQ, rule: { mark, target: "MASQUERADE" } },
    // Chains that masquerade for bridges accept some packets before they come to the end.
    { chain: "POSTROUTING", rule: toMasquerade, first: true },
    ...lookup,
  ];
}

/** The rules in the container's chain. */
function rulesOf(spec: PortMappingsSpec, family: Family): Rule[] {
  const { masquerade, setMarkChain = SETMARK } = spec, { bytes, bits } = addressOf(spec, family)!;
  const rules: Rule[] = [];
  for (const mapping of spec.mappings) {
    if (!appliesTo(spec, mapping, family)) continue;
    const { protocol, hostPort, containerPort } = mapping, at = hostAddress(mapping);
    const match: Omit<Rule, "target"> = {
      protocol,
      destinationPort: hostPort,
      destination: at && { prefix: { bytes: at, bits: at.length * 8 } },
    };
    const mark = (source?: Prefix) =>
      rules.push({ ...match, source: source && { prefix: source }, target: { jump: setMarkChain } });
    if (masquerade === "all") mark();
    if (masquerade === "own") {
      mark({ bytes, bits });
      if (family === 4) mark(localhost);
    }
    rules.push({ ...match, target: { dnat: { address: bytes, port: containerPort } } });
  }
  return rules;
}

/** The rules that lead to the container's chain; iptables takes so many ports in one. */
function entriesOf(spec: PortMappingsSpec, family: Family): Rule[] {
  const conditions = spec.conditions?.[family], entries: Rule[] = [];
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

/** All of them, also those of the other family, as by the reference plugin. */
function portsOf({ mappings }: PortMappingsSpec, protocol: Protocol, conditions: Conditions | undefined): number[] {
  const ports: number[] = [];
  for (const mapping of mappings) {
    if (mapping.protocol === protocol && isAllowed(conditions, mapping)) ports.push(mapping.hostPort);
  }
  return ports;
}

/** Which rules there are for a container, wherever they stand. */
export function everyRule(spec: PortMappingsSpec, family: Family): Rule[] {
  return [...sharedOf(spec).map(({ rule }) => rule), ...rulesOf(spec, family), ...entriesOf(spec, family)];
}

function familiesOf(spec: PortMappingsSpec): Family[] {
  const families: Family[] = [];
  for (const family of [4, 6] as const) if (addressOf(spec, family) !== undefined) families.push(family);
  return families;
}

/** Answers false when the kernel has no nf_tables. */
export function apply(host: NetfilterHost, spec: PortMappingsSpec): boolean {
  const families = familiesOf(spec), external = spec.masquerade && spec.setMarkChain;
  // In every family before one is changed: in the older form they are changed one after the other.
  const lacking = external ? lacksChain(host, external, families) : undefined;
  if (lacking !== undefined) throw missingChain(external!, lacking);
  try {
    return changeTable(host, "nat", families, (table) => {
      addShared(table, spec);
      addOwn(table, spec);
    });
  } catch (error) {
    if (!isNetlinkError(error, ENOENT)) throw error;
    // What the tables need is made by the same transaction, so it is the extensions that are not there.
    const hint =
      'the kernel lacks xt_comment, xt_addrtype, xt_multiport, xt_mark, xt_nat or xt_MASQUERADE; "backend": ' +
      '"nftables" does without';
    throw new CniError(INTERNAL, `portmap by iptables: ${error.message}`, hint, { cause: error });
  }
}

function addShared(table: TableChange, spec: PortMappingsSpec): void {
  const shared = sharedOf(spec), fresh: string[] = [];
  for (const chain of shared.length > 2 ? [DNAT, SETMARK, MASQ] : [DNAT]) {
    if (table.hasChain(chain)) continue;
    table.createChain(chain);
    fresh.push(chain);
  }
  for (const { chain, rule, first } of shared) {
    if (!fresh.includes(chain) && isThere(table, chain, rule)) continue;
    if (first) table.insert(chain, rule);
    else table.append(chain, rule);
  }
}

export function missingChain(chain: string, family: Family): CniError {
  const tool = family === 4 ? "iptables" : "ip6tables";
  return new CniError(INTERNAL, `externalSetMarkChain "${chain}" is not in the table nat of ${tool}`);
}

/** POSTROUTING may be long, where bridges masquerade; one jump in it is found without a look at the others. */
function isThere(table: Table, chain: string, rule: Rule): boolean {
  return isAmong(rule, chain === "POSTROUTING" ? table.jumps(chain, MASQ) : table.rules(chain));
}

/** In one order, which decides what a packet meets first: where anything is not as it should be, all is put in anew. */
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

/** What does not say whose it is may be ours: the reference plugin's, or restored from a text. */
function isOf(owner: string): (rule: FoundRule) => boolean {
  return (rule) => rule.owner === undefined || rule.owner === owner;
}

function areSame(wanted: readonly Rule[], found: readonly FoundRule[]): boolean {
  return wanted.length === found.length && wanted.every((rule, index) => found[index]!.is(rule));
}

/** The container's chain goes, with everything that is not another interface's. */
export function remove(socket: NetlinkSocket | undefined, spec: PortMappingsSpec): void {
  const owner = ownerComment(spec), restated = spec.restated === true;
  const families: readonly Family[] = restated ? [4, 6] : familiesOf(spec);
  changeEveryTable(socket, "nat", families, restated, (table) => {
    removeChain(table, DNAT, chainName(spec), owner);
    if (restated) removeChain(table, SNAT, chainName(spec, "CNI-SN-"), owner);
  });
}

function removeChain(table: TableChange, entrance: string, chain: string, owner: string): void {
  if (!table.hasChain(chain)) return;
  const rules = table.rules(chain), own = rules.filter(isOf(owner));
  for (const jump of table.jumps(entrance, chain)) if (isOf(owner)(jump)) table.delete(jump);
  if (own.length === rules.length) table.deleteChain(chain);
  else for (const rule of own) table.delete(rule);
}

/** One line for each rule that is missing. */
export function verify(host: NetfilterHost, spec: PortMappingsSpec): string[] {
  const differences: string[] = [], chain = chainName(spec);
  for (const family of familiesOf(spec)) {
    const table = readTable(host, "nat", family), tool = family === 4 ? "iptables" : "ip6tables";
    if (!table.hasChain(chain)) {
      differences.push(`chain ${chain} not found in ${tool} table nat`);
      continue;
    }
    const missing = (where: string, rule: Rule) =>
      differences.push(`${tool} rule -A ${where} ${ruleText(rule)} not found in table nat`);
    const rules = table.rules(chain), jumps = table.jumps(DNAT, chain);
    const wanted = rulesOf(spec, family), entries = entriesOf(spec, family);
    for (const rule of missingAmong(rules, wanted)) missing(chain, rule);
    for (const rule of missingAmong(jumps, entries)) missing(DNAT, rule);
    for (const { chain: where, rule } of sharedOf(spec)) {
      if (!table.hasChain(where) || !isThere(table, where, rule)) missing(where, rule);
    }
  }
  return differences;
}

/** For GC: the rules of every container of the network that is not valid, known by the entrance's comments. */
export function sweep(
  socket: NetlinkSocket | undefined,
  network: string,
  isValid: (owner: { containerId: string }) => boolean,
): void {
  changeEveryTable(socket, "nat", [4, 6], true, (table) => {
    const lost = new Set<string>();
    for (const { comment, leadsTo } of table.rules(DNAT)) {
      const parts = /^dnat name: "([^"]*)" id: "([^"]*)"$/.exec(comment ?? "");
      if (parts === null || leadsTo === undefined) continue;
      const named = { network: parts[1]!, containerId: parts[2]! };
      if (named.network === network && chainName(named) === leadsTo && !isValid(named)) lost.add(leadsTo);
    }
    for (const rule of table.rules(DNAT)) if (lost.has(rule.leadsTo ?? "")) table.delete(rule);
    for (const chain of lost) if (table.hasChain(chain)) table.deleteChain(chain);
  });
}

/** The first of the families in which the chain of others is missing. */
export function lacksChain(host: NetfilterHost, chain: string, families: readonly Family[]): Family | undefined {
  for (const family of families) if (!readTable(host, "nat", family).hasChain(chain)) return family;
  return undefined;
}
