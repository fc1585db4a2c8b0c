/**
 * Routes as the bytes that the kernel listed, for copying them to another table, deleting them and restoring them with
 * every attribute, including those that no table here decodes (rtnetlink(7)).
 */
import { AF_INET6, AF_UNSPEC } from "../../socket/socket.ts";
import { EEXIST, ENODEV, ESRCH } from "../../errno.ts";
import { type NetlinkSocket, tryRequest } from "../socket.ts";
import { formatPrefix } from "../../../net/address.ts";
import { eachAttribute, NLM_F_APPEND, NLM_F_CREATE, Writer } from "../wire.ts";
import * as rtnetlink from "../uapi/rtnetlink.ts";
import {
  dumpRoutes,
  eachHop,
  type Hop,
  type KernelRoute,
  readRoute,
  ROUTE_HEADER_BYTES,
  routeBody,
} from "./route.ts";

export interface RouteImage {
  route: KernelRoute & { table: number };
  /** RTPROT_*: who made it. RTPROT_KERNEL for routes that come with an address. */
  protocol: number;
  /** The body of a message, without the table. */
  bytes: Uint8Array;
}

/** The routes of every table and family. An IPv6 route with several next hops becomes one image a hop. */
export function listRouteImages(socket: NetlinkSocket): RouteImage[] {
  return dumpRoutes<RouteImage>(socket, AF_UNSPEC, rtnetlink.RT_TABLE_UNSPEC, (body, images) => {
    const { table, hops = [] } = readRoute(body);
    const add = (bytes: Uint8Array) => images.push({ route: readImage(bytes, table), protocol: body[5]!, bytes });
    if (body[0] !== AF_INET6 || hops.length === 0) add(copyOf(body));
    else for (const hop of hops) add(copyOf(body, hop));
  });
}

/**
 * The routes of one table whose next hops all leave by the link. Routes without a gateway come first: the others
 * need them to reach their gateways.
 */
export function routesOfLink(images: readonly RouteImage[], linkIndex: number, table: number): RouteImage[] {
  const direct: RouteImage[] = [], indirect: RouteImage[] = [];
  for (const image of images) {
    const { route, bytes } = image;
    if (route.table !== table || bytes[7] !== rtnetlink.RTN_UNICAST) continue;
    const hops = eachHop(route);
    if (!hops.every(({ oif }) => oif === linkIndex)) continue;
    (hops.every(({ gateway }) => gateway === undefined) ? direct : indirect).push(image);
  }
  return [...direct, ...indirect];
}

/** The same route by another link of another namespace, which has other nexthop objects. */
export function throughLink(image: Uint8Array, linkIndex: number): Uint8Array {
  const writer = new Writer().raw(image.subarray(0, ROUTE_HEADER_BYTES));
  eachAttribute(image.subarray(ROUTE_HEADER_BYTES), (type, payload) => {
    if (type === rtnetlink.RTA_NH_ID) return;
    writer.attribute(type, () => type === rtnetlink.RTA_OIF ? writer.u32(linkIndex) : writer.raw(payload));
  });
  return writer.bytes.slice(0, writer.length);
}

/** The image of a route that does not exist yet. */
export function imageOf(route: KernelRoute): Uint8Array {
  const writer = new Writer();
  routeBody(route, {
    protocol: rtnetlink.RTPROT_BOOT,
    scope: route.scope ?? rtnetlink.RT_SCOPE_UNIVERSE,
    type: rtnetlink.RTN_UNICAST,
  })(writer);
  return copyOf(writer.bytes.subarray(0, writer.length));
}

export function readImage(bytes: Uint8Array, table: number): KernelRoute & { table: number } {
  const route = readRoute(bytes);
  route.table = table;
  return route;
}

/** Adds the route after existing routes to the same destination. */
export function addRouteImage(socket: NetlinkSocket, bytes: Uint8Array, table: number): "added" | "present" {
  const request = { type: rtnetlink.RTM_NEWROUTE, flags: NLM_F_CREATE | NLM_F_APPEND };
  return send(socket, request, bytes, table, EEXIST) ? "added" : "present";
}

export function delRouteImage(socket: NetlinkSocket, bytes: Uint8Array, table: number): "deleted" | "absent" {
  return send(socket, { type: rtnetlink.RTM_DELROUTE }, bytes, table, ESRCH, ENODEV) ? "deleted" : "absent";
}

/** As `tryRequest`. */
function send(
  socket: NetlinkSocket,
  request: { type: number; flags?: number },
  bytes: Uint8Array,
  table: number,
  ...reasons: number[]
): boolean {
  const what = `${request.type === rtnetlink.RTM_NEWROUTE ? "RTM_NEWROUTE" : "RTM_DELROUTE"} ${
    formatPrefix(readRoute(bytes).dst)
  }`;
  const body = (writer: Writer) => void writer.raw(bytes).attribute(rtnetlink.RTA_TABLE, () => writer.u32(table));
  return tryRequest(socket, { ...request, what: `${what} table ${table}`, body }, reasons);
}

/** Clears state flags such as RTNH_F_DEAD in next hops, which the kernel lists but rejects (struct rtnexthop). */
function withoutState(payload: Uint8Array): Uint8Array {
  const hops = payload.slice(), view = new DataView(hops.buffer);
  for (let at = 0; at + 8 <= hops.length;) {
    hops[at + 2]! &= rtnetlink.RTNH_F_ONLINK;
    at += (Math.max(view.getUint16(at, true), 8) + 3) & ~3;
  }
  return hops;
}

let scratch: Writer | undefined;

/** Leaves out the table and the kernel's state (ages, whether the link is up). `hop` selects one of several. */
function copyOf(body: Uint8Array, hop?: Hop): Uint8Array {
  const writer = (scratch ??= new Writer()).reset();
  const flags = (body[8]! | (hop?.flags ?? 0)) & rtnetlink.RTNH_F_ONLINK;
  writer.raw(body.subarray(0, 4)).u8(rtnetlink.RT_TABLE_UNSPEC).raw(body.subarray(5, 8)).u32(flags);
  const copy = (type: number, payload: Uint8Array) => void writer.attribute(type, () => writer.raw(payload));
  eachAttribute(body.subarray(ROUTE_HEADER_BYTES), (type, payload) => {
    if (type === rtnetlink.RTA_TABLE || type === rtnetlink.RTA_CACHEINFO) return;
    if (type !== rtnetlink.RTA_MULTIPATH) return copy(type, payload);
    if (hop === undefined) return copy(type, withoutState(payload));
    // In the order of attributes of a route with this hop only.
    eachAttribute(hop.attributes, copy);
    writer.attribute(rtnetlink.RTA_OIF, () => writer.u32(hop.oif));
  });
  return writer.bytes.slice(0, writer.length);
}
