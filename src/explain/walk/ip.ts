/** A packet that a link has received, at the host's or the container's own IP: for it, or to be forwarded. */
import { hopped, type PacketFacts } from "../../net/netfilter/packet.ts";
import { NAT_AT } from "../../net/netfilter/call-order.ts";
import type { Link } from "../../ffi/netlink/route/link.ts";
import { formatAddress } from "../../net/address.ts";
import { isLoopback } from "../facts.ts";
import { type HookPassage, throughHook } from "./hooks.ts";
import { forwardingOff, isForItself, isUnicast, type NextWay, questionFor, routeRefused, waysOf } from "./routing.ts";
import {
  destinationOf,
  endsOf,
  isSameEnds,
  type Move,
  noted,
  sourceOf,
  stopped,
  type Tracked,
  type Traveller,
  withEnd,
} from "./traveller.ts";
import { unknownRoute } from "./unknown-route.ts";

/** Which end becomes again what it was. */
const TURNED_BACK = { prerouting: "destination", input: "source", postrouting: "source" } as const;

export function takeIn(traveller: Traveller, input: Link): Move[] {
  // RFC 4291, 2.5.3. For 127.0.0.1, the routes tell.
  if (formatAddress(sourceOf(traveller)) === "::1" && !isLoopback(input)) {
    const text = `${traveller.netns.label} takes nothing of ::1 that comes in by ${input.name}`;
    const mend = [{
      advice: "ask from another address than ::1; a published port at 127.0.0.1 or at the host's address",
    }];
    return stopped(traveller, { code: "martian", what: input.name, text, mend });
  }
  return throughNat(tracking(traveller), { hook: "prerouting", input }, (next) => routed(next, input));
}

/** A hook that translates: the first packet by its rules, answers by what is known of the connection. */
export function throughNat(
  traveller: Traveller,
  passage: HookPassage & { hook: keyof typeof TURNED_BACK },
  onward: (traveller: Traveller) => Move[],
): Move[] {
  const { hook } = passage, at = NAT_AT[hook];
  if (traveller.direction === "going") return throughHook(traveller, passage, onward);
  return throughHook(
    traveller,
    { ...passage, before: at },
    (next) => {
      // Without a connection nothing is translated back.
      const { state } = next.packet, isTracked = state === "established";
      if (state === undefined) return unknownConnection(next, hook);
      return throughHook(isTracked ? restored(next, TURNED_BACK[hook]) : next, { ...passage, from: at }, onward);
    },
  );
}

function unknownConnection(traveller: Traveller, hook: string): Move[] {
  const text = "rules leave open whether the answer belongs to the connection: notrack, or a zone";
  return stopped(traveller, { code: "undecided", what: hook, text }, "unknown");
}

/** The connection begins here, as far as this namespace knows. */
export function tracking(traveller: Traveller): Traveller {
  const { direction, netns, tracked, packet } = traveller, ends = endsOf(packet);
  // A packet may come back to a namespace with other ends, as another connection.
  const isKnown = tracked.some((each) => each.netns === netns && isSameEnds(each.after, ends));
  if (direction === "answer" || isKnown) return traveller;
  return { ...traveller, tracked: [...tracked, { netns, before: ends, after: ends, ...connectionOf(packet) }] };
}

function connectionOf({ connectionMark, state }: PacketFacts): Pick<Tracked, "connectionMark" | "isTracked"> {
  return { connectionMark, isTracked: state === "new" };
}

/** The connection as it leaves this namespace. */
export function tracked(traveller: Traveller): Traveller {
  const { direction, netns, packet } = traveller;
  if (direction === "answer") return traveller;
  const after = endsOf(packet), last = traveller.tracked.findLastIndex((each) => each.netns === netns);
  return {
    ...traveller,
    tracked: traveller.tracked.map((each, at) => at === last ? { ...each, after, ...connectionOf(packet) } : each),
  };
}

/** An answer's address becomes again what it was before this namespace translated it. */
function restored(traveller: Traveller, end: "source" | "destination"): Traveller {
  const { packet } = traveller, connection = trackedHere(traveller);
  if (connection === undefined) return traveller;
  const { before } = connection;
  const [address, port] = end === "destination"
    ? [before.source, before.sourcePort]
    : [before.destination, before.destinationPort];
  return { ...traveller, packet: withEnd(packet, end, address, port) };
}

/** Undefined also when the answer is none of the connection that went out here: nothing is translated then. */
function trackedHere({ netns, tracked, packet }: Traveller): Tracked | undefined {
  const ends = endsOf(packet);
  return tracked.find((each) =>
    each.netns === netns && (isSameEnds(each.after, ends, "reversed") ||
      isSameEnds({ ...each.after, source: each.before.source, sourcePort: each.before.sourcePort }, ends, "reversed"))
  );
}

function routed(traveller: Traveller, input: Link): Move[] {
  const { netns } = traveller, destination = destinationOf(traveller), unknown = unknownRoute(traveller);
  if (unknown !== undefined) return unknown;
  const route = netns.route(questionFor(traveller, input, sourceOf(traveller)));
  if ("errno" in route) return routeRefused(traveller, route.errno, input);
  if (isForItself(route)) {
    const at = noted(traveller, "route", `for ${netns.label} itself`);
    return throughNat(
      at,
      { hook: "input", input },
      (next) => [{ to: "arrive", traveller: tracked(next), link: input }],
    );
  }
  const ways = waysOf(netns, route, destination);
  if (!isUnicast(route) || ways.length === 0) {
    const text = "no packet for one receiver: broadcast, multicast or anycast";
    return stopped(traveller, { code: "undecided", what: "route", text }, "unknown");
  }
  const off = traveller.packet.family === 6 ? forwardingOff(traveller, input) : undefined;
  if (off !== undefined) return off;
  return ways.flatMap((way) => forwarded(traveller, input, way));
}

function forwarded(traveller: Traveller, input: Link, { link: output, nextHop, text }: NextWay): Move[] {
  const at = noted({ ...traveller, packet: hopped(traveller.packet), nextHop }, "route", text);
  return throughHook(at, { hook: "forward", input, output }, (next) => leaving(next, output, input));
}

/** Behind the routes: the last hook, and then the link. What is forwarded still has its first link. */
export function leaving(traveller: Traveller, output: Link, input?: Link): Move[] {
  return throughNat(
    traveller,
    { hook: "postrouting", input, output },
    (next) => [{ to: "transmit", traveller: tracked(next), link: output }],
  );
}
