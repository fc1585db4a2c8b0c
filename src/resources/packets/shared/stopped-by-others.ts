/** Rules of other programs that drop all new connections of containers through the host. What may pass is not told. */
import type { Host } from "../../../contract/host.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { linkTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { parseAddress } from "../../../net/address.ts";
import { unknown } from "../../../net/netfilter/known-bytes.ts";
import { firstPacket, type PacketFacts, type PacketLink } from "../../../net/netfilter/packet.ts";
import type { Ruleset } from "../../../net/netfilter/ruleset.ts";
import { type Place, type Traversal, traverse } from "../../../net/netfilter/traversal.ts";
import { ownTables } from "./own-tables.ts";

/** Addresses beyond every network of this host (RFC 5737, RFC 3849): packets to them take the default route. */
const NOBODY = { 4: parseAddress("192.0.2.1")!, 6: parseAddress("2001:db8::1")! } as const;
const TCP = 6, UDP = 17;

/** What comes in by the link, and leaves by the default route. */
export function sendersStopped(
  { family, ifName }: { family: 4 | 6; ifName: string },
  { route }: Host,
  read: () => Ruleset | undefined,
): string[] {
  const input = getLink(route, ifName), output = linkTowards(route, NOBODY[family]);
  if (input === undefined || input.master !== undefined || output === undefined) return [];
  const rules = read();
  if (rules === undefined) return [];
  const stops = [TCP, UDP].map((protocol) => {
    const packet = { ...packetOf(family, protocol), input, mark: unknown(4), connectionMark: unknown(4) };
    const before = traverse(rules, packet, { hook: "prerouting" });
    return stopIn(before) ?? stopOfAll(before, (each) => forwarded(rules, each, output));
  });
  // What drops one protocol alone is a choice, and not for everybody.
  return stops.every((place) => place !== undefined) && !isOwn(stops[0]!)
    ? [`${placeText(stops[0]!)} drops new connections that come in by ${ifName} and would leave by ${output.name}`]
    : [];
}

function packetOf(family: 4 | 6, protocol: number): PacketFacts {
  const anywhere = unknown(NOBODY[family].length);
  return firstPacket({ family, source: anywhere, destination: anywhere, protocol }, () => undefined);
}

function forwarded(rules: Ruleset, packet: PacketFacts, output: PacketLink): Place | undefined {
  return stopIn(traverse(rules, { ...packet, output }, { hook: "forward" }));
}

/** Undefined when some of it may pass. */
function stopIn({ endings }: Traversal): Place | undefined {
  const isStopped = endings.every(({ fate }) => fate === "is dropped" || fate === "is rejected");
  return isStopped ? endings[0]?.by : undefined;
}

function stopOfAll(
  { endings }: Traversal,
  next: (packet: PacketFacts) => Place | undefined,
): Place | undefined {
  let first: Place | undefined;
  for (const { fate, packet } of endings) {
    if (fate === "is dropped" || fate === "is rejected") continue;
    const place = fate === "passes" ? next(packet) : undefined;
    if (place === undefined) return undefined;
    first ??= place;
  }
  return first;
}

function isOwn({ chain }: Place): boolean {
  return Object.values(ownTables).some(({ name }) => name === chain.table);
}

function placeText({ chain, rule }: Place): string {
  const name = `${chain.family} ${chain.table} ${chain.name}`;
  return rule === undefined ? `the policy of ${name}` : `a rule of ${name} (handle ${rule.handle})`;
}
