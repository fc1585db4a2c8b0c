/** A packet that a namespace sends itself: its first, or the answer to what it received. */
import type { Link } from "../../ffi/netlink/route/link.ts";
import type { KernelRoute } from "../../ffi/netlink/route/route.ts";
import { known, textOf } from "../../net/netfilter/known-bytes.ts";
import { destinationOf, endsOf, knownOr, type Move, noted, type Traveller, withEnd } from "./traveller.ts";
import { addressOn, throughHook } from "./hooks.ts";
import { leaving, tracking } from "./ip.ts";
import { isLoopback } from "../facts.ts";
import { unknownRoute } from "./unknown-route.ts";
import { isForItself, type NextWay, questionFor, routeRefused, waysOf } from "./routing.ts";

/** `isOfOthers`: with an address that the namespace does not have, of which its routes are not asked. */
export function send(traveller: Traveller, isOfOthers = false): Move[] {
  const unknown = unknownRoute(traveller);
  if (unknown !== undefined) return unknown;
  const { netns } = traveller, route = askWay(traveller, isOfOthers);
  if ("errno" in route) return routeRefused(traveller, route.errno);
  const ways = isForItself(route) ? [toItself(traveller)] : waysOf(netns, route, destinationOf(traveller));
  return ways.flatMap((way) => byWay(withSource(traveller, way, route), way, isOfOthers));
}

function byWay(traveller: Traveller, way: NextWay, isOfOthers: boolean): Move[] {
  const begun = tracking(traveller);
  return throughHook(begun, { hook: "output", output: way.link }, (next) => {
    const isSame = textOf(endsOf(next.packet).destination) === textOf(endsOf(begun.packet).destination) &&
      textOf(next.packet.mark) === textOf(begun.packet.mark);
    const now = isSame ? way : otherWay(next, isOfOthers);
    if (now === undefined) return routeRefused(next, (askWay(next, isOfOthers) as { errno: number }).errno);
    return leaving(noted({ ...next, nextHop: now.nextHop }, "route", now.text), now.link);
  });
}

/** Where the packet goes after rules have changed what routes ask for. */
function otherWay(traveller: Traveller, isOfOthers: boolean): NextWay | undefined {
  const route = askWay(traveller, isOfOthers);
  if ("errno" in route) return undefined;
  return isForItself(route) ? toItself(traveller) : waysOf(traveller.netns, route, destinationOf(traveller))[0];
}

function askWay(traveller: Traveller, isOfOthers: boolean) {
  const { netns, packet } = traveller, source = isOfOthers ? undefined : knownOr(endsOf(packet).source, undefined);
  return netns.route(questionFor(traveller, undefined, source));
}

function toItself(traveller: Traveller): NextWay {
  const { netns } = traveller, loopback = netns.links().find(isLoopback) as Link;
  return { link: loopback, nextHop: destinationOf(traveller), text: `to ${netns.label} itself, by lo` };
}

/** A program that names no address of its own sends with the route's, or with one of the link. */
function withSource(traveller: Traveller, { link, nextHop }: NextWay, route: KernelRoute): Traveller {
  const { packet } = traveller, { source, sourcePort } = endsOf(packet);
  if (knownOr(source, undefined) !== undefined) return traveller;
  const own = isForItself(route)
    ? destinationOf(traveller)
    : route.preferredSource ?? traveller.netns.sourceFor(destinationOf(traveller), link) ??
      addressOn(traveller.netns, link, nextHop, packet.family);
  return own === undefined ? traveller : { ...traveller, packet: withEnd(packet, "source", known(own), sourcePort) };
}
