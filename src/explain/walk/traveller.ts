/** A packet on its way, and how its way may end. */
import { parseAddress } from "../../net/address.ts";
import { isKnown, type KnownBytes, knownNumber, mayBeSame, slice, unknown } from "../../net/netfilter/known-bytes.ts";
import { addressOfEnd, type PacketFacts, translated, UNTRANSLATED } from "../../net/netfilter/packet.ts";
import type { Budget, Place } from "../../net/netfilter/traversal.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import type { Code } from "../codes.ts";
import { RTN_UNICAST } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { linkAt, type NetnsFacts } from "../facts.ts";

export interface Step {
  direction: "going" | "answer";
  /** Where: a link, `route`, a hook. */
  what: string;
  text: string;
  state: "ok" | "stop" | "unknown" | "note";
  /** The rule or policy that decided. */
  place?: Place;
}

export interface Cause {
  code: Code;
  netns: NetnsFacts;
  what: string;
  /** The fact as read. */
  text: string;
  place?: Place;
  mend?: readonly Remedy[];
}

/** What mends it: a line to run, or what to do. */
export type Remedy = { run: string; because?: string } | { advice: string };

export type End =
  | { verdict: "arrives"; netns: NetnsFacts; text: string }
  /** The answer comes back by the link. */
  | { verdict: "leaves"; netns: NetnsFacts; text: string; link: Link }
  | { verdict: "stops" | "unknown"; cause: Cause };

export interface Ends {
  source: KnownBytes;
  destination: KnownBytes;
  sourcePort: KnownBytes;
  destinationPort: KnownBytes;
}

/** What a namespace's connection tracking has of the connection. */
export interface Tracked {
  netns: NetnsFacts;
  before: Ends;
  after: Ends;
  /** As the first packet left it. */
  connectionMark: KnownBytes;
  /** Whether the kernel tracks it: otherwise the answer belongs to nothing. */
  isTracked: boolean;
}

export interface Traveller {
  direction: "going" | "answer";
  netns: NetnsFacts;
  packet: PacketFacts;
  steps: readonly Step[];
  tracked: readonly Tracked[];
  /** Whom the sender of a frame takes for the next on the way. */
  nextHop?: Uint8Array;
  /** Its MAC address, of a frame that a container has sent; undefined when it has not answered so far. */
  receiver?: string;
  /** The port of a bridge by which the host received it. */
  port?: number;
  /** The VLAN with whose tag a frame left by a bridge's port: the answer comes in there with it. */
  tag?: number;
  /** The link by which somebody outside sent it to the host; undefined for a sender on this host. */
  fromOutside?: Link;
  /** Some rule left open whether the packet comes this way at all. */
  isOpen?: true;
  hops: number;
  /** For all rules on all ways: those of a container may jump and branch as its root likes. */
  budget: Budget;
  /** The largest packet that the sender's link, and all behind it, have carried. */
  mtu?: number;
  /** A next hop on the way that has not answered so far when it was asked for its MAC address. */
  silent?: Cause;
}

export type Move =
  | { to: "send"; traveller: Traveller }
  | { to: "receive" | "ip" | "arrive" | "transmit" | "loop"; traveller: Traveller; link: Link }
  | { to: "end"; traveller: Traveller; end: End };

export function noted(
  traveller: Traveller,
  what: string,
  text: string,
  rest: { state?: Step["state"]; place?: Place } = {},
): Traveller {
  const { direction, steps } = traveller;
  return { ...traveller, steps: [...steps, { direction, what, text, state: "ok", ...rest }] };
}

/** Small packets pass, so it stops none for certain: `more` says what becomes of larger ones. */
export function carriedBy(traveller: Traveller, { name, mtu }: Link, more: string): Traveller {
  const { mtu: before = mtu } = traveller;
  if (mtu >= before || mtu === 0) return { ...traveller, mtu: before };
  const text = `its MTU is ${mtu}, behind one of ${before}: ${more}`;
  return { ...noted(traveller, name, text, { state: "note" }), mtu };
}

export const DROPPED_SILENTLY = "larger packets are lost, and nobody is told";

export function stopped(
  traveller: Traveller,
  cause: Omit<Cause, "netns">,
  verdict: "stops" | "unknown" = "stops",
): Move[] {
  const { what, text, place } = cause;
  const last = noted(traveller, what, text, { state: verdict === "stops" ? "stop" : "unknown", place });
  return [{ to: "end", traveller: last, end: { verdict, cause: { ...cause, netns: traveller.netns } } }];
}

export function arrives(traveller: Traveller, what: string, text: string): Move[] {
  const { netns } = traveller;
  return [{ to: "end", traveller: noted(traveller, what, text), end: { verdict: "arrives", netns, text } }];
}

/** `by`: the last link that is seen. */
export function leaves(traveller: Traveller, by: Link, text: string, link = by): Move[] {
  const { netns } = traveller, last = noted(traveller, by.name, `leaves ${netns.label} ${text}`);
  return [{ to: "end", traveller: last, end: { verdict: "leaves", netns, text, link } }];
}

export function endsOf(packet: PacketFacts): Ends {
  return {
    source: addressOfEnd(packet, "source"),
    destination: addressOfEnd(packet, "destination"),
    sourcePort: slice(packet.transport, 0, 2),
    destinationPort: slice(packet.transport, 2, 2),
  };
}

/**
 * Strangers in different parts of the address space. Firewalls often name the networks that are reserved for examples, so
 * they are none of those.
 */
export const STRANGERS = {
  4: ["5.6.7.8", "93.184.215.14", "150.1.2.3"].map((text) => parseAddress(text)!),
  6: ["2a00:1450::1", "2600:1f00::1", "2400:cb00::1"].map((text) => parseAddress(text)!),
} as const;

/** For routes, which cannot be asked for a packet of which the address is unknown. */
export function strangerOf(family: 4 | 6): Uint8Array {
  return STRANGERS[family][0]!;
}

/** In another namespace a packet has no mark, and belongs to no connection yet, unless it is the answer in one. */
export function entering(traveller: Traveller, netns: NetnsFacts): Traveller {
  const { direction, packet } = traveller, isAnswer = direction === "answer";
  const before = traveller.tracked.findLast((each) => each.netns === netns), isTracked = before?.isTracked ?? true;
  const connection = isAnswer
    ? {
      connectionMark: before?.connectionMark ?? unknown(4),
      status: unknown(4),
      state: isTracked ? "established" as const : undefined,
    }
    : { connectionMark: knownNumber(0), status: UNTRANSLATED, state: "new" as const };
  const typeOf = (address: Uint8Array) => {
    const route = netns.route({ destination: address });
    return "errno" in route ? undefined : route.type;
  };
  const outputFor: PacketFacts["outputFor"] = (address) => {
    if (netns.routingRules(packet.family) !== undefined) return undefined;
    const route = netns.route({ destination: address });
    if ("errno" in route || route.type !== RTN_UNICAST) return "none";
    return route.hops === undefined ? linkAt(netns, route.oif) : undefined;
  };
  return {
    ...traveller,
    netns,
    port: undefined,
    receiver: undefined,
    // A way by a VRF is not walked.
    packet: { ...packet, ...connection, mark: knownNumber(0), isOutsideVrfs: true, typeOf, outputFor },
  };
}

export function knownOr<Other>(bytes: KnownBytes, other: Other): Uint8Array | Other {
  return isKnown(bytes) ? bytes.value : other;
}

export function destinationOf({ packet }: Traveller): Uint8Array {
  return knownOr(addressOfEnd(packet, "destination"), strangerOf(packet.family));
}

export function sourceOf({ packet }: Traveller): Uint8Array {
  return knownOr(addressOfEnd(packet, "source"), strangerOf(packet.family));
}

export function portIn(bytes: KnownBytes): number | undefined {
  return isKnown(bytes) ? bytes.value[0]! << 8 | bytes.value[1]! : undefined;
}

export function withEnd(
  packet: PacketFacts,
  end: "source" | "destination",
  address: KnownBytes,
  port: KnownBytes,
): PacketFacts {
  return { ...translated(packet, end, { address, port }), status: packet.status };
}

/** Whether nothing that is known of them differs. */
export function isSameEnds(one: Ends, other: Ends, turned?: "reversed"): boolean {
  const { source, destination, sourcePort, destinationPort } = turned ? reversed(one) : one;
  return mayBeSame(source, other.source) && mayBeSame(destination, other.destination) &&
    mayBeSame(sourcePort, other.sourcePort) && mayBeSame(destinationPort, other.destinationPort);
}

export function reversed({ source, destination, sourcePort, destinationPort }: Ends): Ends {
  return { source: destination, destination: source, sourcePort: destinationPort, destinationPort: sourcePort };
}
