/** Rules of other programs that drop all new connections of containers through the host. What may pass is not told. */
import type { Host } from "../../../contract/host.ts";
import type { HostLook } from "../../../contract/resource.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { listRoutes } from "../../../ffi/netlink/route/route.ts";
import { linkTowards, routeTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { rulesOfOthers } from "../../../ffi/netlink/route/rule.ts";
import { familyOf } from "../../../ffi/netlink/route/address.ts";
import { parseAddress } from "../../../net/address.ts";
import { TCP, UDP } from "../../../net/ip-protocol.ts";
import { unknown } from "../../../net/netfilter/known-bytes.ts";
import { firstPacket, hopped, type PacketFacts, type PacketLink } from "../../../net/netfilter/packet.ts";
import type { Ruleset } from "../../../net/netfilter/ruleset.ts";
import { placeText } from "../../../net/netfilter/text.ts";
import { type Budget, newBudget, type Place, type Traversal, traverse } from "../../../net/netfilter/traversal.ts";
import { ownTableNames } from "./own-tables.ts";

/** Addresses beyond every network of this host (RFC 5737, RFC 3849): packets to them take the default route. */
const NOBODY = { 4: parseAddress("192.0.2.1")!, 6: parseAddress("2001:db8::1")! } as const;

/** What comes in by the link, and leaves by the default route. */
export function sendersStopped(
  { family, ifName }: { family: 4 | 6; ifName: string },
  { route, container }: Host,
  look: HostLook,
): string[] {
  // A container that has no way out itself misses nothing.
  if (container !== undefined && routeTowards(container.route, NOBODY[family]) === undefined) return [];
  return look.once(`senders ${family} ${ifName}`, () => {
    const input = getLink(route, ifName), output = linkTowards(route, NOBODY[family]);
    if (input === undefined || input.master !== undefined || output === undefined) return [];
    const rules = look.rules();
    if (rules === undefined) return [];
    const isPlain = hasOneWayOut(route, family), budget = look.once("budget", newBudget);
    const stops = [TCP, UDP].map((protocol) => {
      const packet = { ...packetOf(family, protocol), input };
      return whereStopped(rules, packet, isPlain ? output : "any", budget);
    });
    // What drops one protocol alone is a choice, and not for everybody.
    if (stops.some((place) => place === undefined || isOwn(place))) return [];
    const way = isPlain ? `would leave by ${output.name}` : "would leave the host";
    return [`${placeText(stops[0]!)} drops new TCP and UDP connections that come in by ${ifName} and ${way}`];
  });
}

/** One default route, and no rule that takes another table for some packets. */
function hasOneWayOut(route: Host["route"], family: 4 | 6): boolean {
  const number = familyOf(NOBODY[family]), ways = listRoutes(route, number).filter(({ dst }) => dst.bits === 0);
  return ways.length === 1 && ways[0]!.hops === undefined &&
    rulesOfOthers(route, number) === undefined;
}

function packetOf(family: 4 | 6, protocol: number): PacketFacts {
  const anywhere = unknown(NOBODY[family].length);
  const packet = firstPacket({ family, source: anywhere, destination: anywhere, protocol }, () => undefined);
  // Bridges, queues and the older tables may have set marks.
  return { ...packet, mark: unknown(4), connectionMark: unknown(4) };
}

/** Undefined when some of it may pass, or may be for the host itself. */
function whereStopped(rules: Ruleset, packet: PacketFacts, output: PacketLink, budget: Budget): Place | undefined {
  const before = traverse(rules, packet, { hook: "prerouting", budget });
  const stop = stopIn(before);
  if (stop !== undefined) return stop;
  let first: Place | undefined;
  for (const { fate, packet: passed } of before.endings) {
    if (fate === "is dropped" || fate === "is rejected") continue;
    // Where its destination is translated to, nobody knows here.
    const place = fate === "passes" && passed.status === packet.status
      ? stopIn(traverse(rules, { ...hopped(passed), output }, { hook: "forward", budget }))
      : undefined;
    if (place === undefined) return undefined;
    first ??= place;
  }
  return first;
}

/** Undefined when some of it may pass. */
function stopIn({ endings }: Traversal): Place | undefined {
  const isStopped = endings.every(({ fate }) => fate === "is dropped" || fate === "is rejected");
  return isStopped ? endings[0]?.by : undefined;
}

function isOwn({ chain }: Place): boolean {
  return ownTableNames().includes(`${chain.family} ${chain.table}`);
}
