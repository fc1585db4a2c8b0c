/**
 * Who else has a port of the host: in the tables of iptables, in our own table, in podman's. Our table gives a port to one
 * owner, and refuses others. iptables takes what it is asked for, and no table knows the others.
 *
 * The kernel asks a hook's chains for NAT in the order of their priorities: iptables' and podman's have -100, ours has
 * -99. The first chain that translates a connection decides. Which of two with the same priority comes first depends on
 * when each was made.
 */
import type { PortClaim, PortClaimant, PortWay } from "../../contract/host-ports.ts";
import type { Host } from "../../contract/host.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import { existingTable } from "../../interop/iptables/host-tables.ts";
import { FAMILIES, type Family, protocolNumbers } from "../../interop/iptables/rule.ts";
import { isSameBytes } from "../../net/address.ts";
import { DNAT, isAmongAll } from "../packets/port-mappings/spec.ts";
import { CHAIN, chainName } from "../packets/port-mappings/iptables.ts";
import { keyOf, overlaps, PORTS, PORTS_AT, RANGES, RANGES_AT } from "../packets/port-mappings/nft-elements.ts";
import { Contents, owned } from "../packets/port-mappings/nft-structure.ts";
import { namedIn } from "../packets/shared/iptables-chains.ts";
import { netfilterOf } from "../packets/shared/netfilter-socket.ts";
import { isOfContainer, ownerInComment } from "../packets/shared/owner-comment.ts";
import type { CommentedHolder, PortHolder } from "./holders.ts";
import { holdersInNetavarksTable } from "./in-netavarks-table.ts";

export { hostListeners } from "./listeners.ts";
export { unreachedPorts } from "./unreached.ts";

/** One line for each port that has no effect. */
export interface IdlePorts {
  /** The claimant's ports. */
  here: string[];
  /** Ports of others, because of the claimant. */
  elsewhere: string[];
}

const priorities: Record<PortWay, number> = { iptables: -100, netavark: -100, nftables: -99 };

/** In the order in which the kernel asks their tables. */
const ways = ["iptables", "netavark", "nftables"] as const;

/** One line for each port that others have, too: who gets the connections. A port that is lost is lost to one only. */
export function idleBecauseOfRivals(claimant: PortClaimant, host: Host): IdlePorts {
  const here = new Set<string>(), elsewhere = new Set<string>(), lost = new Set<PortClaim>();
  const holders = ways.flatMap((way) =>
    claimant.claims.length === 0 ? [] : holdersBy[way](claimant, host).map((holder) => ({ holder, way }))
  );
  for (const { holder, way } of holders) {
    const reason = lost.has(holder.claim) ? undefined : whyLost(claimant, holder, way);
    if (reason === undefined) continue;
    here.add(reason);
    const isCertain = way === claimant.way || priorities[way] < priorities[claimant.way];
    if (isCertain) lost.add(holder.claim);
  }
  for (const { holder, way } of holders) {
    const reason = lost.has(holder.claim) ? undefined : whyWon(claimant, holder, way);
    if (reason !== undefined) elsewhere.add(reason);
  }
  return { here: [...here], elsewhere: [...elsewhere] };
}

function whyLost(
  claimant: PortClaimant,
  { claim, whose, isOfAll, isLater }: PortHolder,
  way: PortWay,
): string | undefined {
  const { protocol, port, at } = claim, leads = `host port ${port}/${protocol} leads to ${whose}`;
  const order = priorities[way] - priorities[claimant.way], isCovered = isOfAll || at !== undefined;
  if (order > 0 || isLater || (!isCovered && (order < 0 || way === claimant.way))) return undefined;
  const outcome = "that container gets the connections, this one none";
  if (way === claimant.way) return `${leads}, whose rule comes first: ${outcome}`;
  if (order < 0) return `${leads} by ${way}, which comes first: ${outcome}`;
  return `${leads} by ${way}, too: one of the two gets the connections, by whichever of ${way} and ${claimant.way} ` +
    "the kernel asks first";
}

function whyWon(claimant: PortClaimant, { claim, whose, isOfAll }: PortHolder, way: PortWay): string | undefined {
  const { protocol, port, at } = claim;
  if (priorities[way] <= priorities[claimant.way] || (at !== undefined && isOfAll)) return undefined;
  return `host port ${port}/${protocol} led to ${whose} by ${way}; ${claimant.way} comes first: ` +
    "this container gets the connections, that one none";
}

const holdersBy: Record<PortWay, (claimant: PortClaimant, host: Host) => PortHolder[]> = {
  iptables: (claimant, host) => FAMILIES.flatMap((family) => holdersInIptables(claimant, host, family)),
  // In a table of ours a port has one owner.
  nftables: (claimant, host) => claimant.way === "nftables" ? [] : inNftables(host, claimant, holdersInOurTable),
  netavark: (claimant, host) =>
    claimant.way === "netavark" ? [] : inNftables(host, claimant, holdersInNetavarksTable),
};

function inNftables(
  host: Host,
  claimant: PortClaimant,
  find: (claimant: PortClaimant, socket: NetlinkSocket) => CommentedHolder[],
): PortHolder[] {
  const socket = netfilterOf(host);
  if (socket === undefined) return [];
  return find(claimant, socket).filter(({ comment }) => !isOfContainer(comment, claimant.containerId));
}

function holdersInIptables(claimant: PortClaimant, host: Host, family: Family): PortHolder[] {
  const wanted = claimant.claims.filter((claim) => claim.family === family), holders: PortHolder[] = [];
  const table = wanted.length === 0 ? undefined : existingTable(netfilterOf(host), "nat", family),
    own = chainName(claimant);
  let isLater = false;
  for (const { comment, leadsTo = "", destinationPorts } of table?.rules(DNAT) ?? []) {
    isLater ||= leadsTo === own;
    // There may be many containers: the chains of those with other ports are not listed.
    const shared = wanted.filter(({ port }) => destinationPorts?.includes(port) ?? true);
    const named = shared.length === 0 ? undefined : namedIn(CHAIN, comment, leadsTo);
    if (named === undefined || named.containerId === claimant.containerId) continue;
    const rules = table!.rules(leadsTo), whose = `container ${named.containerId} of network ${named.network}`;
    for (const claim of shared) {
      const { protocol, port, at } = claim;
      for (const rule of rules) {
        if (!rule.matches({ protocol, destinationPort: port }) || !meets(rule.destination, at)) continue;
        if (rule.destination === undefined && !isAmongAll(at)) continue;
        holders.push({ claim, whose, isOfAll: rule.destination === undefined, isLater });
      }
    }
  }
  return holders;
}

/** Whether a port at the one address, or at all, is also one at the other. */
function meets(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined || isSameBytes(one, other);
}

function holdersInOurTable({ claims }: PortClaimant, socket: NetlinkSocket): CommentedHolder[] {
  if (!owned.exists(socket)) return [];
  const contents = new Contents(socket, claims.length), holders: CommentedHolder[] = [];
  for (const claim of claims) {
    const { family, protocol, port, at } = claim, number = protocolNumbers[protocol], size = family === 4 ? 4 : 16;
    // Mappings with conditions have other maps: they are for a part of the connections.
    const map = (kind: string) => `${kind}_ipv${family}`;
    const ofAll = !isAmongAll(at)
      ? []
      : [PORTS, RANGES].map((kind) => contents.at(map(kind), keyOf(undefined, number, port)));
    const ofOne = [PORTS_AT, RANGES_AT].flatMap((kind) => contents.list(map(kind))).filter((element) => {
      const address = element.key.subarray(0, size);
      return meets(address, at) && overlaps(element, { key: keyOf(address, number, port) });
    });
    for (const element of [...ofAll, ...ofOne]) {
      if (element === undefined) continue;
      const { comment } = element;
      holders.push({ claim, whose: ownerInComment(comment), comment, isOfAll: ofAll.includes(element) });
    }
  }
  return holders;
}
