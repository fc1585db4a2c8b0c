/** Addresses and routes that others gave the container's link, in front of those that ADD gave it. */
import { AF_INET, AF_INET6 } from "../../../ffi/socket/socket.ts";
import { delAddress, listAddresses } from "../../../ffi/netlink/route/address.ts";
import {
  addRoute,
  delRoute,
  describeRoute,
  isSameRoute,
  type KernelRoute,
  listRoutes,
} from "../../../ffi/netlink/route/route.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import { routeTowards } from "../../../ffi/netlink/route/route-lookup.ts";
import { RT_SCOPE_LINK, RT_TABLE_MAIN, RTN_UNICAST, RTPROT_KERNEL } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";
import {
  contains,
  formatAddress,
  formatPrefix,
  isLinkLocal,
  isSameBytes,
  networkOf,
  nextAddress,
  parseAddress,
  type Prefix,
} from "../../../net/address.ts";

/** What ADD gave the link. */
export interface GivenToLink {
  link: Link;
  addresses: readonly Prefix[];
  routes: readonly KernelRoute[];
  /** Its neighbours are behind the gateway. */
  isPointToPoint: boolean;
}

interface InFront {
  text: string;
  /** Our route that packets do not take, or take with another source. Undefined when ours cannot be put first. */
  route?: KernelRoute;
  /** Our address that is not the source of packets, because another address is. */
  source?: Prefix;
}

/** What packets take instead of what ADD gave. */
export function findInFront(given: GivenToLink, socket: NetlinkSocket): InFront[] {
  // The routes of a VRF's member are in the VRF's table.
  if (given.link.master !== undefined) return [];
  const found: InFront[] = [];
  for (const isV4 of [true, false]) {
    const addresses = given.addresses.filter((one) => isOf(one.bytes, isV4));
    const routes = given.routes.filter(({ dst }) => isOf(dst.bytes, isV4));
    if (addresses.length === 0 || routes.length === 0) continue;
    const inMain = listRoutes(socket, isV4 ? AF_INET : AF_INET6);
    for (const route of routes) {
      // CHECK tells of a route that is missing; sbr moves routes to a table of its own.
      const isMissing = !inMain.some((present) => isSameRoute(route, present));
      if (isMissing || (route.table ?? RT_TABLE_MAIN) !== RT_TABLE_MAIN) continue;
      const one = inFrontOf(route, { ...given, addresses }, inMain, socket);
      if (one !== undefined) found.push(one);
    }
  }
  return found;
}

/** Before the link is there, for `plan`: destinations to which another link of the container leads already. */
export function alreadyRouted(routes: readonly KernelRoute[], socket: NetlinkSocket): string[] {
  const lines: string[] = [];
  for (const { dst, priority = 0, table = RT_TABLE_MAIN } of routes) {
    if (table !== RT_TABLE_MAIN) continue;
    const first = listRoutes(socket, dst.bytes.length === 4 ? AF_INET : AF_INET6).find((route) =>
      route.dst.bits === dst.bits && contains(dst, route.dst.bytes) && (route.priority ?? 0) <= priority
    );
    const link = first && getLink(socket, first.oif);
    if (link === undefined) continue;
    lines.push(`packets to ${formatPrefix(dst)} go on leaving by ${link.name}, whose route comes first`);
  }
  return lines;
}

function isOf(bytes: Uint8Array, isV4: boolean): boolean {
  return (bytes.length === 4) === isV4;
}

function inFrontOf(
  route: KernelRoute,
  given: GivenToLink,
  inMain: readonly KernelRoute[],
  socket: NetlinkSocket,
): InFront | undefined {
  const { link, addresses } = given, which = describeRoute(route);
  const stranger = strangerBefore(route, given, inMain);
  if (stranger !== undefined) {
    const { type, oif, gateway } = stranger;
    if (type !== RTN_UNICAST) return { text: `a route of others is in front of ${which}, and leads nowhere`, route };
    const other = describeRoute({ ...stranger, table: undefined });
    const text = `a route of others, ${other}, is in front of ${which}`;
    // By another link: a VPN of the container's, or another network of it.
    if (oif !== link.index) return undefined;
    // IPv6 knows no order of routes with one metric.
    return gateway?.length === 16 ? { text: `${text}: 'ip -6 route del ${other}' there` } : { text, route };
  }
  const taken = routeTowards(socket, sampleOf(route.dst, given));
  if (taken?.oif !== link.index) return undefined;
  const { preferredSource } = taken;
  if (preferredSource === undefined || isLinkLocal(preferredSource)) return undefined;
  if (addresses.some(({ bytes }) => isSameBytes(bytes, preferredSource))) return undefined;
  // What a router announces, for IPv6, has an end.
  const source = listAddresses(socket, link.index).find(({ bytes, lifetime }) =>
    (bytes.length === 4 || lifetime.valid === Infinity) && isSameBytes(bytes, preferredSource)
  );
  if (source === undefined) return undefined;
  const ours = addresses.find((one) => contains(one, source.bytes)) ?? addresses[0]!;
  const text = `${link.name} sends as ${formatAddress(source.bytes)}, an address of others, not as ` +
    `${formatAddress(ours.bytes)}; the rules for this container do not know it`;
  return { text, route, source: ours };
}

/** A route to the same destination that neither ADD nor the kernel made, before ours; for IPv6 also one beside it. */
function strangerBefore(
  route: KernelRoute,
  { routes }: GivenToLink,
  inMain: readonly KernelRoute[],
): KernelRoute | undefined {
  const isToSame = ({ dst }: KernelRoute) => dst.bits === route.dst.bits && contains(route.dst, dst.bytes);
  const same = inMain.filter(isToSame).sort((one, other) => (one.priority ?? 0) - (other.priority ?? 0));
  const at = same.findIndex((one) => isSameRoute(route, one));
  // IPv6 spreads packets over all next hops of one metric.
  const counts = (one: KernelRoute, index: number) =>
    index < at || (isOf(one.dst.bytes, false) && one.priority === same[at]!.priority);
  const isStranger = (one: KernelRoute) =>
    one.protocol !== RTPROT_KERNEL && !routes.some((ours) => isSameRoute(ours, one));
  return same.find((one, index) => counts(one, index) && isStranger(one));
}

/** An address of the destination that is nobody's, or nearly so (RFC 5737, RFC 3849), and has no route of its own. */
function sampleOf(dst: Prefix, { addresses, routes }: GivenToLink): Uint8Array {
  const isV4 = dst.bytes.length === 4;
  if (dst.bits === 0) return parseAddress(isV4 ? "192.0.2.1" : "2001:db8::1")!;
  if (dst.bits === dst.bytes.length * 8) return dst.bytes;
  const taken = [...addresses.map(({ bytes }) => bytes), ...routes.map(({ gateway }) => gateway)];
  let sample = nextAddress(networkOf(dst));
  while (taken.some((one) => one !== undefined && isSameBytes(one, sample))) sample = nextAddress(sample);
  return sample;
}

/** Nothing of others is changed: they stay, behind. `give` puts an address on the link. */
export function putOursFirst(given: GivenToLink, socket: NetlinkSocket, give: (address: Prefix) => void): void {
  const { index } = given.link;
  for (const { source, route } of findInFront(given, socket)) {
    if (route === undefined) continue;
    if (source !== undefined && source.bytes.length === 16) {
      // The kernel prefers the last one that it got.
      delAddress(socket, index, source);
      give(source);
      continue;
    }
    const preferredSource = route.preferredSource ?? (source ?? sourceFor(route, given))?.bytes;
    putRouteFirst({ ...route, preferredSource });
    if (source === undefined || given.isPointToPoint || source.bits === 32) continue;
    const dst = { bytes: networkOf(source), bits: source.bits };
    putRouteFirst({ dst, oif: index, scope: RT_SCOPE_LINK, protocol: RTPROT_KERNEL, preferredSource });
  }

  /** First of the routes with its metric. The source shows which route is ours: without a gateway, others' would match, too. */
  function putRouteFirst(route: KernelRoute): void {
    delRoute(socket, route);
    addRoute(socket, route);
  }
}

/** IPv6 chooses by rules of its own. */
function sourceFor({ dst, gateway }: KernelRoute, { addresses }: GivenToLink): Prefix | undefined {
  if (dst.bytes.length === 16) return undefined;
  const ofFamily = addresses.filter(({ bytes }) => bytes.length === 4);
  return ofFamily.find((one) => gateway !== undefined && contains(one, gateway)) ?? ofFamily[0];
}
