/**
 * The rules of a network of podman's in nftables: forwarding, masquerade, isolation, DNS, and the chains for published
 * ports. The first container makes them, and the last one removes them, when the bridge has no port left.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import type { Host } from "../../contract/host.ts";
import { from, to } from "../../ffi/netlink/nftables/packet-match.ts";
import { commitUnchanged } from "../../ffi/netlink/nftables/batch.ts";
import { chainUse, delChain } from "../../ffi/netlink/nftables/table.ts";
import { compares } from "../../ffi/netlink/nftables/compare.ts";
import { jumpTarget } from "../../ffi/netlink/nftables/action.ts";
import type { NftMessage } from "../../ffi/netlink/nftables/message.ts";
import { delRule, flushChain, type FoundRule } from "../../ffi/netlink/nftables/rule.ts";
import { delSet, linkNameOf, listSets } from "../../ffi/netlink/nftables/set.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { parsePrefix } from "../../net/address.ts";
import {
  chain,
  ISOLATION_1,
  ISOLATION_2,
  ISOLATION_3,
  portsChain,
  portsMap,
  subnetChain,
  table,
} from "./shared/nft-names.ts";
import {
  addNetworkChains,
  addSharedChains,
  type FoundNetwork,
  networkRules,
  type NetworkRulesSpec,
  type PlacedRule,
  sharedRules,
} from "./shared/nft-rules.ts";
import { areSameExpressions, mentions, TableRules, writeRule } from "./shared/nft-table.ts";
import { isSpare } from "./shared/bridge.ts";

export const networkRulesKind: ResourceKind<NetworkRulesSpec> = {
  kind: "network-rules",
  confines: true,
  apply(spec, host) {
    const { netfilter } = host, network = asFound(spec, host);
    commitUnchanged(netfilter, () => planMaking(netfilter, network));
  },
  verify(spec, host) {
    return missing(new TableRules(host.netfilter), asFound(spec, host)).map(({ chain }) =>
      `a rule of network ${spec.networkId} in chain ${chain} of table inet ${table.name} is missing`
    );
  },
  remove(spec, host, isRestated) {
    if (!isSpare(spec.bridge, host)) return;
    const network = asFound(spec, host);
    commitUnchanged(host.netfilter, () => planRemoval(host.netfilter, spec.bridge, network));
    if (isRestated) removeNetavark1(spec, host);
  },
  repair: (spec, host) => networkRulesKind.apply(spec, host),
  describe: ({ bridge, subnets }) => `rules for ${subnets.map(({ subnet }) => subnet).join(", ")} on ${bridge}`,
};

export const netavarkNetworkRules = resource(networkRulesKind);

/** The document may have an alternative name of the bridge, which rules do not know. Only isolation goes by a name. */
function asFound(spec: NetworkRulesSpec, host: Host): FoundNetwork {
  const link = spec.isInternal ? undefined : getLink(host.route, spec.bridge);
  return { ...spec, bridge: link?.name ?? spec.bridge, isInVrf: link?.master !== undefined };
}

function removeNetavark1({ network, bridge, subnets }: NetworkRulesSpec, host: Host): void {
  const { removeNetworkRules } = require(
    "./shared/netavark1-rules.ts",
  ) as typeof import("./shared/netavark1-rules.ts");
  removeNetworkRules({ network, bridge, subnets: subnets.map(({ subnet }) => subnet) }, host);
}

function missing(present: TableRules, network: FoundNetwork): PlacedRule[] {
  const own = networkRules(network);
  return own.length === 0 ? [] : [...sharedRules, ...own].filter((rule) => !present.has(rule));
}

function planMaking(socket: NetlinkSocket, network: FoundNetwork): NftMessage[] {
  const present = new TableRules(socket), lacking = missing(present, network);
  if (lacking.length === 0) return [];
  return [
    ...addSharedChains(),
    ...addNetworkChains(network),
    ...lacking.some(isInFront) ? putInFront(present) : [],
    ...lacking.filter((rule) => !isInFront(rule)).flatMap((rule) => writeRule(rule)),
  ];
}

const inFront = sharedRules.filter(({ chain }) => chain === "FORWARD");

function isInFront(rule: PlacedRule): boolean {
  return inFront.includes(rule);
}

/**
 * These rules in their order, before the chain's others. In a table that netavark before 2.1 made, the one for published
 * ports is missing, and would have no effect behind the jump to the rules of isolated networks.
 */
function putInFront(present: TableRules): NftMessage[] {
  const old = present.in("FORWARD").filter(({ expressions }) =>
    inFront.some((rule) => areSameExpressions(rule.expressions, expressions))
  );
  return [
    ...old.map((rule) => delRule(chain(rule.chain), rule.handle)),
    ...inFront.toReversed().flatMap((rule) => writeRule({ ...rule, isFirst: true })),
  ];
}

/** Finds the network's rules whatever its options were when they were made, and whichever of the bridge's names they have. */
function planRemoval(socket: NetlinkSocket, configuredBridge: string, network: FoundNetwork): NftMessage[] {
  const { networkId, subnets, bridge } = network, names = [configuredBridge, bridge].map(linkNameOf);
  const chains = subnets.flatMap(({ subnet }) => [portsChain(networkId, subnet), subnetChain(networkId, subnet)]);
  const own = networkRules(network);
  const ends = subnets.flatMap(({ subnet }) => [from(parsePrefix(subnet)!), to(parsePrefix(subnet)!)]);
  const isOfNetwork = ({ chain, expressions }: FoundRule): boolean => {
    if (own.some((rule) => rule.chain === chain && areSameExpressions(rule.expressions, expressions))) return true;
    if (chains.includes(jumpTarget(expressions) ?? "")) return true;
    if (ISOLATIONS.includes(chain)) return expressions.some((each) => names.some((name) => compares(each, name)));
    return OF_SUBNETS.includes(chain) && ends.some((end) => mentions(expressions, end));
  };
  const rules = new TableRules(socket).all().filter((rule) => !chains.includes(rule.chain) && isOfNetwork(rule));
  const present = chains.filter((each) => chainUse(socket, chain(each)) !== undefined);
  const maps = listSets(socket, table);
  return [
    ...rules.map((rule) => delRule(chain(rule.chain), rule.handle)),
    ...present.map((each) => flushChain(chain(each))),
    ...present.map((each) => delChain(chain(each))),
    ...subnets.map(({ subnet }) => portsMap(networkId, subnet)).filter(({ name }) => maps.includes(name)).map(delSet),
  ];
}

const ISOLATIONS = [ISOLATION_1, ISOLATION_2, ISOLATION_3];
/** Every rule about the subnet in these chains belongs to the network. */
const OF_SUBNETS = ["INPUT", "FORWARD", "POSTROUTING"];
