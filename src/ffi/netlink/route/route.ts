/** Routes: the verbs of `ip route` (rtnetlink(7)). */
import { AF_INET, AF_INET6 } from "../../socket/socket.ts";
import { contains, formatAddress, formatPrefix, networkOf, type Prefix } from "../../../net/address.ts";
import { ENOENT, ESRCH } from "../../errno.ts";
import { attrTable, binary, custom, nest, u32 } from "../attrs.ts";
import { insteadOfRefusal, listOf, type NetlinkSocket, tryRequest } from "../socket.ts";
import { NLM_F_CREATE, NLM_F_EXCL, type Writer } from "../wire.ts";
import * as rtnetlink from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";

const metricAttrs = attrTable("RTAX", { mtu: u32(rtnetlink.RTAX_MTU), advmss: u32(rtnetlink.RTAX_ADVMSS) });

const routeAttrs = attrTable("RTA", {
  dst: binary(rtnetlink.RTA_DST),
  preferredSource: binary(rtnetlink.RTA_PREFSRC),
  gateway: binary(rtnetlink.RTA_GATEWAY),
  table: u32(rtnetlink.RTA_TABLE),
  priority: u32(rtnetlink.RTA_PRIORITY),
  oif: u32(rtnetlink.RTA_OIF),
  metrics: nest(rtnetlink.RTA_METRICS, metricAttrs),
  hops: custom<Hop[]>(rtnetlink.RTA_MULTIPATH, { write: () => {}, read: readHops }),
});

const hopAttrs = attrTable("RTA", { gateway: binary(rtnetlink.RTA_GATEWAY) });

/** One of several next hops of a route. */
export interface Hop {
  oif: number;
  gateway?: Uint8Array;
  flags: number;
  /** The hop's own attributes, undecoded. */
  attributes: Uint8Array;
}

/** A sequence of struct rtnexthop: length u16, flags u8, hops u8, index s32, then attributes. */
function readHops(payload: Uint8Array): Hop[] {
  const hops: Hop[] = [];
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  for (let at = 0; at + HOP_HEADER_BYTES <= payload.length;) {
    const length = view.getUint16(at, true);
    if (length < HOP_HEADER_BYTES) break;
    const attributes = payload.subarray(at + HOP_HEADER_BYTES, at + length);
    const { gateway } = hopAttrs.decode(attributes);
    hops.push({ oif: view.getInt32(at + 4, true), gateway, flags: payload[at + 2]!, attributes });
    at += (length + 3) & ~3;
  }
  return hops;
}

/** struct rtmsg: family, dst length, src length, tos, table, protocol, scope, type (u8 each), flags u32. */
export const ROUTE_HEADER_BYTES = 12;
const HOP_HEADER_BYTES = 8;

function writeHeader(
  writer: Writer,
  header: { family: number; bits: number; protocol?: number; scope?: number; type?: number },
): void {
  // The table is sent as an attribute, which can exceed 255.
  writer.u8(header.family).u8(header.bits).u8(0).u8(0).u8(0);
  writer.u8(header.protocol ?? 0).u8(header.scope ?? 0).u8(header.type ?? 0).u32(0);
}

export interface KernelRoute {
  dst: Prefix;
  /** 0 when there are `hops`, and for types without a link. */
  oif: number;
  /** Set for several next hops. For IPv6 the kernel joins routes to one destination into one with several hops. */
  hops?: Hop[];
  gateway?: Uint8Array;
  priority?: number;
  table?: number;
  scope?: number;
  preferredSource?: Uint8Array;
  mtu?: number;
  advmss?: number;
  /** RTN_…; unicast unless given. */
  type?: number;
  /** RTPROT_…: who added it. */
  protocol?: number;
}

/** The body of a request on the route: struct rtmsg and attributes. */
export function routeBody(route: KernelRoute, header: { protocol?: number; scope: number; type?: number }) {
  return (writer: Writer) => {
    writeHeader(writer, { family: familyOf(route.dst.bytes), bits: route.dst.bits, ...header });
    routeAttrs.encode(writer, {
      // Host bits are sent as they are: the kernel rejects them for IPv4, and masks them for IPv6.
      dst: route.dst.bits === 0 ? undefined : route.dst.bytes,
      preferredSource: route.preferredSource,
      gateway: route.gateway,
      table: route.table ?? rtnetlink.RT_TABLE_MAIN,
      priority: route.priority,
      oif: route.oif || undefined,
      metrics: route.mtu || route.advmss ? { mtu: route.mtu, advmss: route.advmss } : undefined,
    });
  };
}

/**
 * Without NLM_F_EXCL, like the reference plugins: a second gateway joins the first. `alone` is `ip route add`: EEXIST when
 * another route has the destination and the metric.
 */
export function addRoute(socket: NetlinkSocket, route: KernelRoute, { alone = false } = {}): void {
  socket.request({
    what: `RTM_NEWROUTE ${formatPrefix(route.dst)}`,
    type: rtnetlink.RTM_NEWROUTE,
    flags: alone ? NLM_F_CREATE | NLM_F_EXCL : NLM_F_CREATE,
    table: routeAttrs,
    fixedBytes: ROUTE_HEADER_BYTES,
    body: routeBody(route, {
      protocol: route.protocol ?? rtnetlink.RTPROT_BOOT,
      scope: route.scope ?? rtnetlink.RT_SCOPE_UNIVERSE,
      type: route.type ?? rtnetlink.RTN_UNICAST,
    }),
  });
}

/** `ip route del`; a route without scope matches any. */
export function delRoute(socket: NetlinkSocket, route: KernelRoute): "deleted" | "absent" {
  const request = {
    what: `RTM_DELROUTE ${formatPrefix(route.dst)}`,
    type: rtnetlink.RTM_DELROUTE,
    table: routeAttrs,
    fixedBytes: ROUTE_HEADER_BYTES,
    body: routeBody(route, { scope: route.scope ?? rtnetlink.RT_SCOPE_NOWHERE, type: route.type }),
  };
  return tryRequest(socket, request, [ESRCH]) ? "deleted" : "absent";
}

/** Decodes the body of a message. */
export function readRoute(body: Uint8Array): KernelRoute & { table: number } {
  const values = routeAttrs.decode(body.subarray(ROUTE_HEADER_BYTES));
  return {
    dst: { bytes: values.dst ?? new Uint8Array(body[0] === AF_INET ? 4 : 16), bits: body[1]! },
    oif: values.oif ?? 0,
    hops: values.hops,
    gateway: values.gateway,
    priority: values.priority,
    table: values.table ?? body[4]!,
    scope: body[6]!,
    type: body[7]!,
    protocol: body[5]!,
    preferredSource: values.preferredSource,
    mtu: values.metrics?.mtu,
    advmss: values.metrics?.advmss,
  };
}

/** What `read` adds of the message body of every route that is no cache entry. RT_TABLE_UNSPEC means every table. */
export function dumpRoutes<T>(
  socket: NetlinkSocket,
  family: number,
  table: number,
  read: (body: Uint8Array, found: T[]) => void,
): T[] {
  return listOf<T>(
    socket,
    {
      what: "RTM_GETROUTE dump",
      type: rtnetlink.RTM_GETROUTE,
      body: (writer) => {
        writeHeader(writer, { family, bits: 0 });
        routeAttrs.encode(writer, { table: table === rtnetlink.RT_TABLE_UNSPEC ? undefined : table });
      },
    },
    ({ type, payload }, found) => {
      if (type !== rtnetlink.RTM_NEWROUTE) return;
      const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
      if ((view.getUint32(8, true) & rtnetlink.RTM_F_CLONED) === 0) read(payload, found);
    },
  );
}

/** Splits a route with several next hops into one route a hop. */
export function eachHop<Route extends KernelRoute>(route: Route): Route[] {
  if (route.hops === undefined) return [route];
  const routes: Route[] = [];
  for (const { oif, gateway } of route.hops) routes.push({ ...route, hops: undefined, oif, gateway });
  return routes;
}

/** `ip route show table …` for one family, one route a next hop; none when there is no such table. */
export function listRoutes(socket: NetlinkSocket, family: number, table = rtnetlink.RT_TABLE_MAIN): KernelRoute[] {
  const read = (body: Uint8Array, routes: KernelRoute[]) => {
    const route = readRoute(body);
    // Kernels before 5.0 send every table.
    if (table === rtnetlink.RT_TABLE_UNSPEC || route.table === table) routes.push(...eachHop(route));
  };
  return insteadOfRefusal([ENOENT], [], () => dumpRoutes(socket, family, table, read));
}

/** The default route that packets take: of the lowest metric, and of IPv4 before IPv6. */
export function defaultRoute(socket: NetlinkSocket, table = rtnetlink.RT_TABLE_MAIN): KernelRoute | undefined {
  for (const family of [AF_INET, AF_INET6]) {
    const all = listRoutes(socket, family, table).filter(({ dst, oif }) => dst.bits === 0 && oif !== 0);
    if (all.length > 0) return all.toSorted((one, other) => (one.priority ?? 0) - (other.priority ?? 0))[0];
  }
  return undefined;
}

/** For messages: `10.0.0.0/8 via 10.1.0.1 metric 5`. */
export function describeRoute({ dst, priority, table, ...route }: KernelRoute): string {
  let via = "";
  for (const { gateway } of route.hops ?? [route]) {
    via += gateway === undefined ? "" : ` via ${formatAddress(gateway)}`;
  }
  return `${formatPrefix(dst)}${via}${priority ? ` metric ${priority}` : ""}${table ? ` table ${table}` : ""}`;
}

/**
 * Whether the kernel's route is the wanted one; fields that `wanted` leaves out match anything. The kernel lists the
 * network where an IPv6 configuration may have host bits.
 */
export function isSameRoute(wanted: KernelRoute, route: KernelRoute): boolean {
  if (wanted.dst.bits !== route.dst.bits || wanted.oif !== route.oif) return false;
  if (!contains({ bytes: networkOf(wanted.dst), bits: wanted.dst.bits }, route.dst.bytes)) return false;
  if (wanted.priority && wanted.priority !== route.priority) return false;
  if (wanted.type !== undefined && wanted.type !== route.type) return false;
  const same = (a?: Uint8Array, b?: Uint8Array) => String(a ?? "") === String(b ?? "");
  return wanted.gateway === undefined || same(wanted.gateway, route.gateway);
}
