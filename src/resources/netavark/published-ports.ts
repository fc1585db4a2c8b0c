/**
 * The published ports of a container of podman's. Ports of all addresses of the host are elements of the subnet's map; a
 * port of one address is a rule of its own, as netavark writes it. The comment of both names the owner.
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import type { Host } from "../../contract/host.ts";
import type { PortClaimant } from "../../contract/host-ports.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Owner } from "../../contract/owner.ts";
import { destinationPort, from, ofFamily, to, transportProtocol } from "../../ffi/netlink/nftables/packet-match.ts";
import { portBytes } from "../../net/port.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { comment, commentIn } from "../../ffi/netlink/nftables/comment.ts";
import { between, equals } from "../../ffi/netlink/nftables/compare.ts";
import type { Expression } from "../../ffi/netlink/nftables/expression.ts";
import { destinationNatTo, jump } from "../../ffi/netlink/nftables/action.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { delRule, type FoundRule, listRules } from "../../ffi/netlink/nftables/rule.ts";
import { createElement, delElement, type Element, getElement, type NftSet } from "../../ffi/netlink/nftables/set.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { type Protocol, protocolNumbers } from "../../interop/iptables/rule.ts";
import { formatAddress, parseAddress, parsePrefix, type Prefix } from "../../net/address.ts";
import { ownerComment, ownerInComment } from "../packets/shared/owner-comment.ts";
import { chain, DNAT, portsChain, portsMap, SETMARK } from "./shared/nft-names.ts";
import { hairpinSources, type PlacedRule, setPublishedMark, toPort } from "./shared/nft-rules.ts";
import { areSameExpressions, writeRule } from "./shared/nft-table.ts";

export interface PublishedPortsSpec extends Owner {
  networkId: string;
  /** The first address of each family, with its subnet. */
  targets: { address: string; subnet: string }[];
  ports: PublishedPort[];
}

export interface PublishedPort {
  protocol: Protocol;
  hostPort: number;
  containerPort: number;
  /** The number of consecutive ports. */
  range: number;
  /** Without it, all addresses; with zeros, all addresses of that family. */
  hostIp?: string;
}

export const publishedPortsKind: ResourceKind<PublishedPortsSpec> = {
  kind: "published-ports",
  apply(spec, host) {
    commitUnchanged(host.netfilter, () => planMaking(spec, host));
  },
  verify(spec, { netfilter }) {
    const owner = ownerComment(spec), differences: string[] = [];
    for (const { set, element, port } of elementsOf(spec, owner)) {
      const found = getElement(netfilter, set, element.key);
      if (found === undefined) differences.push(`port ${port} is missing`);
      else if (found.comment !== owner) differences.push(`port ${port} belongs to ${ownerInComment(found.comment)}`);
    }
    const missing = rulesOf(spec, isOfOneAddress).length - ownRules(netfilter, spec, owner).length;
    if (missing > 0) differences.push(`${missing} rules for ports of one address are missing`);
    return differences;
  },
  remove(spec, host, isRestated) {
    commitUnchanged(host.netfilter, () => planRemoval(host.netfilter, spec, isRestated === true));
    if (isRestated) netavark1().removeContainerRules(spec, host);
  },
  repair: (spec, host) => publishedPortsKind.apply(spec, host),
  claimedPorts: claimantOf,
  gist: ({ ports }) => ({ ports: ports.map(portText) }),
  describe: ({ ports, targets }) => `ports ${ports.map(portText).join(", ")} for ${targets[0]?.address ?? "nothing"}`,
};

export const publishedPorts = resource(publishedPortsKind);

function netavark1() {
  return require("./shared/netavark1-rules.ts") as typeof import("./shared/netavark1-rules.ts");
}

function claimantOf({ network, containerId, targets, ports }: PublishedPortsSpec): PortClaimant {
  const claims: PortClaimant["claims"] = [];
  for (const { address } of targets) {
    const size = parseAddress(address)!.length, family = size === 4 ? 4 : 6;
    for (const port of ports) {
      if (!isForFamily(port, size)) continue;
      const at = isOfOneAddress(port) ? parseAddress(port.hostIp!) : undefined;
      for (let each = port.hostPort; each < port.hostPort + port.range; each++) {
        claims.push({ family, protocol: port.protocol, port: each, at });
      }
    }
  }
  return { network, containerId, way: "netavark", claims };
}

function portText({ protocol, hostPort, containerPort, range, hostIp }: PublishedPort): string {
  const host = hostIp === undefined ? "" : `${hostIp}:`;
  return `${host}${runText(hostPort, range)}->${runText(containerPort, range)}/${protocol}`;
}

/** `8080`, or `8080-8089` */
export function runText(first: number, range: number): string {
  return range === 1 ? `${first}` : `${first}-${first + range - 1}`;
}

/** A port that another container of the network has. */
export class PortTaken extends CniError {
  constructor(port: string, { data }: Element, readonly holder: Owner) {
    const { containerId, ifName, network } = holder, address = formatAddress(data!.subarray(0, -4));
    super(
      INTERNAL,
      `host port ${port} is taken by container ${containerId}, interface ${ifName} of network ${network}`,
      `it leads to ${address}; its teardown frees it`,
    );
  }
}

/**
 * podman asks whether a port is free only after setup. So a port stays with its container, unless its teardown has begun or
 * no ledger records it: the packets of a container that runs would go to one that is about to fail.
 */
function planMaking(spec: PublishedPortsSpec, host: Host): NftMessage[] {
  const owner = ownerComment(spec), messages: NftMessage[] = [], socket = host.netfilter;
  let holders: Map<string, Owner> | undefined;
  for (const { set, element, port } of elementsOf(spec, owner)) {
    const found = getElement(socket, set, element.key);
    if (found !== undefined) {
      if (found.comment !== owner) {
        holders ??= recordedHolders(spec, host);
        const holder = holders.get(found.comment);
        if (holder !== undefined) throw new PortTaken(port, found, holder);
      }
      messages.push(delElement(set, element.key));
    }
    messages.push(createElement(set, element));
  }
  const rules = rulesOf(spec, isOfOneAddress);
  if (rules.length === 0) return messages;
  const present = ownRules(socket, spec, owner);
  for (const rule of rules) {
    if (
      present.some((found) => found.chain === rule.chain && areSameExpressions(rule.expressions, found.expressions))
    ) continue;
    messages.push(...writeRule(rule, { userdata: comment(owner) }));
  }
  return messages;
}

/** By the comment of their elements, which can be cut off. */
function recordedHolders(spec: PublishedPortsSpec, host: Host): Map<string, Owner> {
  const others = host.recordedByOthers(publishedPortsKind.kind, spec) as PublishedPortsSpec[];
  return new Map(others.map((other) => [ownerComment(other), other]));
}

function planRemoval(socket: NetlinkSocket, spec: PublishedPortsSpec, isRestated: boolean): NftMessage[] {
  const owner = ownerComment(spec), messages: NftMessage[] = [];
  for (const { set, element } of elementsOf(spec, owner)) {
    if (getElement(socket, set, element.key)?.comment === owner) messages.push(delElement(set, element.key));
  }
  const rules = isRestated ? netavarksRules(socket, spec, owner) : ownRules(socket, spec, owner);
  for (const { chain: name, handle } of rules) messages.push(delRule(chain(name), handle));
  return messages;
}

/** The rules with our comment. Reads the chains only when the container has ports of one address. */
function ownRules(socket: NetlinkSocket, spec: PublishedPortsSpec, owner: string): FoundRule[] {
  if (!spec.ports.some(isOfOneAddress)) return [];
  return chainsOf(spec).flatMap((name) =>
    listRules(socket, chain(name), (userdata) => commentIn(userdata) === owner)
  );
}

/** Our own rules, and the rules that netavark writes for these ports. */
function netavarksRules(socket: NetlinkSocket, spec: PublishedPortsSpec, owner: string): FoundRule[] {
  const written = rulesOf(spec, () => true).flatMap((rule) => [rule, unmarked(rule)]);
  return chainsOf(spec).flatMap((name) => listRules(socket, chain(name))).filter((found) =>
    found.comment === owner ||
    // A rule with another comment belongs to the container that has the address and the port now.
    found.comment === "" &&
      written.some((rule) => rule.chain === found.chain && areSameExpressions(rule.expressions, found.expressions))
  );
}

/** As netavark before 2.1 writes it. */
function unmarked({ chain, expressions }: PlacedRule): PlacedRule {
  return { chain, expressions: expressions.filter((each) => !setPublishedMark.includes(each)) };
}

function chainsOf({ networkId, targets }: PublishedPortsSpec): string[] {
  return [DNAT, ...targets.map(({ subnet }) => portsChain(networkId, subnet))];
}

interface Placed {
  set: NftSet;
  element: Element;
  /** For messages. */
  port: string;
}

function elementsOf({ networkId, targets, ports }: PublishedPortsSpec, owner: string): Placed[] {
  const placed: Placed[] = [];
  for (const { address, subnet } of targets) {
    const to = parseAddress(address)!, set = portsMap(networkId, subnet);
    for (const port of ports) {
      if (isOfOneAddress(port) || !isForFamily(port, to.length)) continue;
      for (let at = 0; at < port.range; at++) {
        const key = keyOf(port.protocol, port.hostPort + at);
        const data = new Uint8Array(to.length + 4);
        data.set(to);
        data.set(portBytes(port.containerPort + at), to.length);
        placed.push({ set, element: { key, data, comment: owner }, port: `${port.hostPort + at}/${port.protocol}` });
      }
    }
  }
  return placed;
}

/** Each part takes four bytes. */
function keyOf(protocol: Protocol, port: number): Uint8Array {
  return new Uint8Array([protocolNumbers[protocol], 0, 0, 0, ...portBytes(port), 0, 0]);
}

export function isOfOneAddress({ hostIp }: PublishedPort): boolean {
  return hostIp !== undefined && parseAddress(hostIp)!.some((byte) => byte !== 0);
}

export function isForFamily({ hostIp }: PublishedPort, addressLength: number): boolean {
  return hostIp === undefined || parseAddress(hostIp)!.length === addressLength;
}

/** The rules that netavark writes for the ports. */
function rulesOf({ networkId, targets, ports }: PublishedPortsSpec, isMeant: (port: PublishedPort) => boolean) {
  const rules: PlacedRule[] = [];
  for (const { address, subnet } of targets) {
    const target = parseAddress(address)!, prefix = parsePrefix(subnet)!;
    for (const port of ports) {
      if (isMeant(port) && isForFamily(port, target.length)) {
        rules.push(...portRules(port, target, prefix, portsChain(networkId, subnet)));
      }
    }
  }
  return rules;
}

function portRules(port: PublishedPort, target: Uint8Array, subnet: Prefix, ports: string): PlacedRule[] {
  const { hostIp, hostPort, containerPort, range } = port, size = target.length;
  const host = isOfOneAddress(port) ? to({ bytes: parseAddress(hostIp!)!, bits: size * 8 }) : [];
  const family = host.length === 0 ? [] : ofFamily(size);
  const isPort = toPorts(port, hostPort, range);
  const rules: PlacedRule[] = [{ chain: DNAT, expressions: [...family, ...host, ...isPort, jump(ports)] }];
  for (const source of hairpinSources(subnet)) {
    const isSource = [...ofFamily(size), ...from(source)];
    rules.push({ chain: ports, expressions: [...isSource, ...host, ...isPort, jump(SETMARK)] });
  }
  for (let at = 0; at < range; at++) {
    const isThis = toPorts(port, hostPort + at, 1);
    const translated = destinationNatTo(target, portBytes(containerPort + at));
    rules.push({ chain: ports, expressions: [...family, ...host, ...isThis, ...setPublishedMark, ...translated] });
  }
  return rules;
}

/** `tcp dport 8080`, or `tcp dport 8080-8090` */
function toPorts({ protocol }: PublishedPort, first: number, range: number): Expression[] {
  if (range === 1) return toPort(protocol, first);
  const isProtocol = [transportProtocol, equals(new Uint8Array([protocolNumbers[protocol]])), destinationPort];
  return [...isProtocol, ...between(portBytes(first), portBytes(first + range - 1))];
}
