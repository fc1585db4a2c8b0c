/**
 * The rules of the table `inet netavark`, in the form that netavark writes them: each program finds and removes what the
 * other has made. They exist once, once for each network, or once for each port that is published for one address of
 * the host.
 *
 * Published ports of all addresses are elements of a map for each subnet, so that neither a packet nor a container
 * waits longer when there are more of them. netavark has a rule for each.
 */
import {
  connectionMark,
  destinationPort,
  destinationPortInto,
  establishedOrRelated,
  from,
  inputLink,
  invalid,
  memberLink,
  multicast4,
  multicast6,
  notTo,
  ofFamily,
  outputLink,
  packetMark,
  setConnectionMark,
  setPacketMark,
  to,
  toThisHost,
  transportProtocol,
  transportProtocolInto,
} from "../../../ffi/netlink/nftables/packet-match.ts";
import { portBytes } from "../../../net/port.ts";
import { addBaseChain, addChain, addTable, type Hook } from "../../../ffi/netlink/nftables/table.ts";
import {
  differs,
  equals,
  hostOrder,
  isInRuleSet,
  isKeyOf,
  masked,
  valueIn,
  withBits,
} from "../../../ffi/netlink/nftables/compare.ts";
import { type Expression, registerAt } from "../../../ffi/netlink/nftables/expression.ts";
import {
  accept,
  destinationNat,
  destinationNatTo,
  drop,
  jump,
  masquerade,
  sourceNatTo,
} from "../../../ffi/netlink/nftables/action.ts";
import type { NftMessage } from "../../../ffi/netlink/nftables/message.ts";
import {
  addMap,
  ipv4AndPort,
  ipv6AndPort,
  linkNameOf,
  protocolAndPortKey,
} from "../../../ffi/netlink/nftables/set.ts";
import {
  NF_INET_FORWARD,
  NF_INET_LOCAL_IN,
  NF_INET_LOCAL_OUT,
  NF_INET_POST_ROUTING,
  NF_INET_PRE_ROUTING,
} from "../../../ffi/netlink/uapi/nf-tables.ts";
import { type Protocol, protocolNumbers } from "../../../interop/iptables/rule.ts";
import { parseAddress, parsePrefix, type Prefix } from "../../../net/address.ts";
import { DNS_PORT } from "./dns-port.ts";
import {
  chain,
  DNAT,
  ISOLATION_1,
  ISOLATION_2,
  ISOLATION_3,
  portsChain,
  portsMap,
  SETMARK,
  subnetChain,
  table,
} from "./nft-names.ts";

/** What the rules of a network of podman's depend on. */
export interface NetworkRulesSpec {
  /** The network's name. */
  network: string;
  networkId: string;
  bridge: string;
  subnets: RuledSubnet[];
  isInternal: boolean;
  /** Which other networks' containers its containers reach: all; those that are not isolated; none. */
  isolation: "never" | "normal" | "strict";
  dnsPort: number;
  /** Where containers ask for names; empty when the network has no DNS. */
  dnsServers: string[];
  /** The source address of connections that leave the network, instead of the outgoing link's. */
  outbound4?: string;
  outbound6?: string;
}

/** The network, and what is found of its bridge. */
export interface FoundNetwork extends NetworkRulesSpec {
  /** Rules see the VRF as the link that a packet came by. */
  isInVrf: boolean;
}

/** `subnet` as configured: the names of chains come from it. */
export interface RuledSubnet {
  subnet: string;
}

export interface PlacedRule {
  chain: string;
  expressions: readonly Expression[];
  /** Before the chain's other rules, instead of after them. */
  isFirst?: true;
}

/** Packets to published ports, which isolation lets through. */
const PUBLISHED_MARK = 0x1000;
/** Packets whose replies would bypass this host, unless they are masqueraded. */
const MASQUERADE_MARK = 0x2000;

/** Stands for `{ tcp, udp }`: `writeRule` puts a set in its place. */
export const tcpOrUdp = isInRuleSet();

const NAT_DESTINATION = -100, NAT_SOURCE = 100;
const hooks: Record<string, Hook> = {
  INPUT: { type: "filter", hook: NF_INET_LOCAL_IN, priority: 0 },
  FORWARD: { type: "filter", hook: NF_INET_FORWARD, priority: 0 },
  POSTROUTING: { type: "nat", hook: NF_INET_POST_ROUTING, priority: NAT_SOURCE },
  PREROUTING: { type: "nat", hook: NF_INET_PRE_ROUTING, priority: NAT_DESTINATION },
  OUTPUT: { type: "nat", hook: NF_INET_LOCAL_OUT, priority: NAT_DESTINATION },
};

/** The table, and the chains that all networks share, unless they exist. */
export function addSharedChains(): NftMessage[] {
  const messages = [addTable(table)];
  for (const name in hooks) messages.push(addBaseChain(chain(name), hooks[name]!));
  for (const name of [SETMARK, DNAT, ISOLATION_1, ISOLATION_2, ISOLATION_3]) messages.push(addChain(chain(name)));
  return messages;
}

/** The rules that exist once. Like netavark, teardown leaves them. */
export const sharedRules: readonly PlacedRule[] = [
  { chain: "FORWARD", expressions: [...invalid, drop] },
  { chain: "FORWARD", expressions: [connectionMark, ...hasBits(PUBLISHED_MARK), accept] },
  { chain: "FORWARD", expressions: [jump(ISOLATION_1)] },
  { chain: "POSTROUTING", expressions: [packetMark, ...hasBits(MASQUERADE_MARK), masquerade] },
  { chain: "PREROUTING", expressions: [...toThisHost, jump(DNAT)] },
  { chain: "OUTPUT", expressions: [...toThisHost, jump(DNAT)] },
  { chain: SETMARK, expressions: [packetMark, withBits(MASQUERADE_MARK), setPacketMark] },
  { chain: ISOLATION_3, expressions: [jump(ISOLATION_2)] },
];

function hasBits(mark: number): Expression[] {
  return [masked(hostOrder(mark)), equals(hostOrder(mark))];
}

/** The chains and maps of a network, unless they exist. */
export function addNetworkChains({ networkId, subnets }: NetworkRulesSpec): NftMessage[] {
  const messages: NftMessage[] = [];
  for (const { subnet } of subnets) {
    const value = prefixOf(subnet).bytes.length === 4 ? ipv4AndPort : ipv6AndPort;
    messages.push(
      addChain(chain(subnetChain(networkId, subnet))),
      addChain(chain(portsChain(networkId, subnet))),
      addMap(portsMap(networkId, subnet), protocolAndPortKey, value),
    );
  }
  return messages;
}

/** In the order of the chains. An internal network has only rules for DNS. */
export function networkRules(network: FoundNetwork): PlacedRule[] {
  const { subnets, isInternal } = network;
  const rules: PlacedRule[] = [];
  if (!isInternal) rules.push(...isolationRules(network));
  for (const each of subnets) {
    rules.push(...dnsRules(network, each));
    if (!isInternal) rules.push(...subnetRules(network, each));
  }
  return rules;
}

function isolationRules({ bridge, isolation, isInVrf }: FoundNetwork): PlacedRule[] {
  const out = [outputLink, equals(linkNameOf(bridge)), drop];
  if (isolation === "never") return [{ chain: ISOLATION_3, expressions: out, isFirst: true }];
  const next = isolation === "strict" ? ISOLATION_3 : ISOLATION_2;
  // netavark has the first of them alone.
  const leaving = [inputLink, ...isInVrf ? [memberLink] : []].map((input) => ({
    chain: ISOLATION_1,
    expressions: [input, equals(linkNameOf(bridge)), outputLink, differs(linkNameOf(bridge)), jump(next)],
  }));
  return [...leaving, { chain: ISOLATION_2, expressions: out }];
}

function subnetRules({ networkId, outbound4, outbound6 }: NetworkRulesSpec, { subnet }: RuledSubnet): PlacedRule[] {
  const prefix = prefixOf(subnet), size = prefix.bytes.length, outbound = size === 4 ? outbound4 : outbound6;
  const own = subnetChain(networkId, subnet), ports = portsChain(networkId, subnet);
  const map = portsMap(networkId, subnet).name;
  const isSource = [...ofFamily(size), ...from(prefix)], isDestination = [...ofFamily(size), ...to(prefix)];
  const leaves = [...ofFamily(size), ...notTo(size === 4 ? multicast4 : multicast6)];
  const translated = outbound === undefined ? [masquerade] : sourceNatTo(parseAddress(outbound)!);
  const isPublished = [transportProtocol, destinationPortInto(registerAt(1)), isKeyOf(map)];
  const marked: PlacedRule[] = hairpinSources(prefix).map((source) => ({
    chain: ports,
    expressions: [...ofFamily(size), ...from(source), ...isPublished, jump(SETMARK)],
  }));
  return [
    { chain: own, expressions: [...isDestination, accept] },
    { chain: own, expressions: [...leaves, ...translated] },
    { chain: "POSTROUTING", expressions: [...isSource, jump(own)] },
    { chain: "FORWARD", expressions: [...isDestination, ...establishedOrRelated, accept] },
    { chain: "FORWARD", expressions: [...isSource, accept] },
    ...marked,
    { chain: ports, expressions: [...isPublished, ...setPublishedMark] },
    {
      chain: ports,
      expressions: [
        ...ofFamily(size),
        transportProtocolInto(registerAt(0)),
        destinationPortInto(registerAt(1)),
        valueIn(map),
        destinationNat(size, { withPort: true }),
      ],
    },
    { chain: DNAT, expressions: [...ofFamily(size), ...isPublished, jump(ports)] },
  ];
}

/** Senders whose packets need the host's address as their source, so that replies come back through the host. */
export function hairpinSources(subnet: Prefix): Prefix[] {
  const loopback = { bytes: new Uint8Array([127, 0, 0, 1]), bits: 32 };
  return subnet.bytes.length === 4 ? [subnet, loopback] : [subnet];
}

export const setPublishedMark = [packetMark, withBits(PUBLISHED_MARK), setConnectionMark];

function dnsRules({ dnsPort, dnsServers, isInternal }: NetworkRulesSpec, { subnet }: RuledSubnet): PlacedRule[] {
  const prefix = prefixOf(subnet), size = prefix.bytes.length;
  const rules: PlacedRule[] = [], servers = dnsServers.filter((text) => parseAddress(text)!.length === size);
  if (isInternal && dnsServers.length === 0) return rules;
  for (const port of dnsPort === DNS_PORT ? [DNS_PORT] : [DNS_PORT, dnsPort]) {
    rules.push({ chain: "INPUT", expressions: [...ofFamily(size), ...from(prefix), ...toPortOfBoth(port), accept] });
  }
  if (dnsPort === DNS_PORT) return rules;
  for (const server of servers) {
    const bytes = parseAddress(server)!;
    const isQuery = [...ofFamily(size), ...to({ bytes, bits: size * 8 }), ...toPortOfBoth(DNS_PORT)];
    rules.push({
      chain: DNAT,
      expressions: [...isQuery, ...destinationNatTo(bytes, portBytes(dnsPort))],
      isFirst: true,
    });
  }
  return rules;
}

/** `tcp dport 8080` */
export function toPort(protocol: Protocol, port: number): Expression[] {
  return [
    transportProtocol,
    equals(new Uint8Array([protocolNumbers[protocol]])),
    destinationPort,
    equals(portBytes(port)),
  ];
}

/** `meta l4proto { tcp, udp } th dport …` */
function toPortOfBoth(port: number): Expression[] {
  return [transportProtocol, tcpOrUdp, destinationPort, equals(portBytes(port))];
}

function prefixOf(subnet: string): Prefix {
  return parsePrefix(subnet)!;
}
