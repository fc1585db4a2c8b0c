/** Networks whose containers may get the same addresses, and routes of the host that lead elsewhere: for operators. */
import { AF_INET, AF_INET6 } from "../ffi/socket/socket.ts";
import { asRead } from "../cni/json.ts";
import type { AddressSpan, Segment } from "../contract/plugin.ts";
import { pluginParts } from "../engine/plugin-parts.ts";
import { hostSockets } from "../process/kept-open.ts";
import { getLink, linkIndex } from "../ffi/netlink/route/link.ts";
import { type KernelRoute, listRoutes } from "../ffi/netlink/route/route.ts";
import { warn } from "../process/warn.ts";
import { compareAddresses, formatPrefix, overlap, type Prefix } from "../net/address.ts";
import { listNetworkFiles, type NetworkFile } from "./conf/directory.ts";
import type { Network } from "./conf/network.ts";
import { pluginConfig } from "./plugin-config.ts";

/** Addresses that a network gives out, and where their containers are. */
interface Claim {
  readonly range: AddressSpan;
  /** As a pool says it. */
  readonly sharedLeases: string | undefined;
  readonly segment: Segment;
}

/** A network with its claims, which are read once for many comparisons. */
export interface ClaimingNetwork {
  readonly name: string;
  readonly path: string;
  readonly claims: readonly Claim[];
}

export function claimantsIn(files: readonly NetworkFile[]): ClaimingNetwork[] {
  return files.flatMap(({ network, path }) => network === undefined ? [] : [claimantOf(network, path)]);
}

export function claimantOf(network: Network, path: string): ClaimingNetwork {
  return { name: network.name, path, claims: network.plugins.flatMap((plugin) => claimsOf(network, plugin)) };
}

/** Returns none for a plugin that is not ours, or that rejects its configuration. */
function claimsOf(network: Network, plugin: Network["plugins"][number]): Claim[] {
  try {
    const [link, lender] = pluginParts({ type: plugin.type, document: asRead(pluginConfig(network, plugin, {})) });
    const segment = link?.conf && link.plugin?.segment?.(link.conf);
    if (segment === undefined || lender?.conf === undefined) return [];
    const pools = lender.plugin?.pools?.(lender.conf) ?? [];
    return pools.flatMap(({ spans, sharedLeases }) => spans.map((range) => ({ range, sharedLeases, segment })));
  } catch {
    return [];
  }
}

/** How many networks of one subnet have their names in a line. */
const NAMED = 3;

/** One line for each subnet that networks of other names give out, too. */
export function overlapsWith(one: ClaimingNetwork, others: readonly ClaimingNetwork[]): string[] {
  const bySubnet = new Map<string, ClaimingNetwork[]>();
  for (const other of others) {
    if (other.name === one.name) continue;
    const clash = one.claims.find((claim) => other.claims.some((theirs) => areInTheWay(claim, theirs)));
    if (clash === undefined) continue;
    bySubnet.getOrInsertComputed(subnetOf(clash), () => []).push(other);
  }
  return [...bySubnet].map(([subnet, sharing]) => `addresses ${subnet} overlap with those of ${namesOf(sharing)}`);
}

function namesOf(networks: readonly ClaimingNetwork[]): string {
  if (networks.length === 1) return `network ${networks[0]!.name} in ${networks[0]!.path}`;
  const names = networks.slice(0, NAMED).map(({ name }) => name), more = networks.length - names.length;
  const last = more === 0 ? names.pop() : `${more} more`;
  return `${networks.length} networks: ${names.join(", ")} and ${last}`;
}

/**
 * On one link, networks may share a subnet and divide its addresses. The host can route a subnet to one link only; behind
 * other links, where it does not route, the same subnet may be another network.
 */
function areInTheWay(one: Claim, other: Claim): boolean {
  const isSameLink = one.segment.link === other.segment.link;
  if (one.segment.isRouted && other.segment.isRouted && !isSameLink) {
    return overlap(one.range.subnet, other.range.subnet);
  }
  if (one.sharedLeases !== undefined && one.sharedLeases === other.sharedLeases) return false;
  return isSameLink && one.segment.isRouted === other.segment.isRouted && shareAddresses(one.range, other.range);
}

function shareAddresses(one: AddressSpan, other: AddressSpan): boolean {
  return one.start.length === other.start.length && compareAddresses(one.start, other.end) <= 0 &&
    compareAddresses(other.start, one.end) <= 0;
}

function subnetOf({ range: { subnet } }: Claim): string {
  return formatPrefix(subnet);
}

/** One line for each route of the host that leads to addresses of the network by another link than its own. */
export function overlappingRoutes({ claims }: ClaimingNetwork): string[] {
  const routed = claims.filter(({ segment }) => segment.isRouted);
  if (routed.length === 0) return [];
  const socket = hostSockets.route.take();
  try {
    const routes = [AF_INET, AF_INET6].flatMap((family) => listRoutes(socket, family));
    // The configuration may call its link by an alternative name.
    const own = new Set(
      routed.map(({ segment: { link } }) => link === undefined ? undefined : linkIndex(socket, link)),
    );
    const lines = routes.flatMap((route) => {
      const clash = own.has(route.oif)
        ? undefined
        : routed.find(({ range: { subnet } }) => isInTheWay(route, subnet));
      const link = clash === undefined ? undefined : getLink(socket, route.oif)?.name;
      if (link === undefined) return [];
      const to = formatPrefix(route.dst);
      return [`addresses ${subnetOf(clash!)} overlap with the host's route to ${to} by ${link}`];
    });
    return [...new Set(lines)];
  } finally {
    hostSockets.route.giveBack(socket);
  }
}

/**
 * Routes to single addresses are those to containers of `ptp`, which another network's claims tell. A wider route by a
 * gateway yields to the network's own, as a default route does.
 */
function isInTheWay({ dst, oif, gateway }: KernelRoute, subnet: Prefix): boolean {
  if (oif === 0 || dst.bits === 0 || dst.bits === dst.bytes.length * 8 || !overlap(dst, subnet)) return false;
  return dst.bits >= subnet.bits || gateway === undefined;
}

/** What `plan` says of a network that comes from a file. */
export function warnOfOverlaps(network: Network): void {
  const { path } = network;
  if (path === undefined) return;
  try {
    const one = claimantOf(network, path);
    if (one.claims.length === 0) return;
    const others = claimantsIn(listNetworkFiles(path.slice(0, path.lastIndexOf("/"))));
    for (const line of [...overlapsWith(one, others), ...overlappingRoutes(one)]) {
      warn(`network ${one.name}: ${line}`);
    }
  } catch {
    // What cannot be read does not keep the network from being used.
  }
}
