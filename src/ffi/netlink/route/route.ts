/** Routes: the verbs of `ip route` (rtnetlink(7)). */
import { networkOf, type Prefix } from "../../../net/address.ts";
import { ESRCH } from "../../errno.ts";
import { attrTable, binary, nest, u32 } from "../attrs.ts";
import { isNetlinkError, type NetlinkSocket } from "../socket.ts";
import { NLM_F_CREATE, type Writer } from "../wire.ts";
import {
  RT_SCOPE_NOWHERE,
  RT_SCOPE_UNIVERSE,
  RT_TABLE_MAIN,
  RTA_DST,
  RTA_GATEWAY,
  RTA_METRICS,
  RTA_OIF,
  RTA_PREFSRC,
  RTA_PRIORITY,
  RTA_TABLE,
  RTAX_ADVMSS,
  RTAX_MTU,
  RTM_DELROUTE,
  RTM_F_CLONED,
  RTM_GETROUTE,
  RTM_NEWROUTE,
  RTN_UNICAST,
  RTPROT_BOOT,
} from "../uapi/rtnetlink.ts";
import { familyOf } from "./address.ts";

const metricAttrs = attrTable("RTAX", { mtu: u32(RTAX_MTU), advmss: u32(RTAX_ADVMSS) });

const routeAttrs = attrTable("RTA", {
  dst: binary(RTA_DST),
  preferredSource: binary(RTA_PREFSRC),
  gateway: binary(RTA_GATEWAY),
  table: u32(RTA_TABLE),
  priority: u32(RTA_PRIORITY),
  oif: u32(RTA_OIF),
  metrics: nest(RTA_METRICS, metricAttrs),
});

/** struct rtmsg: family, dst length, src length, tos, table, protocol, scope, type (u8 each), flags u32. */
const HEADER_BYTES = 12;

function writeHeader(
  writer: Writer,
  header: { family: number; bits: number; protocol?: number; scope?: number; type?: number },
): void {
  // The table travels as an attribute, which holds more than 255.
  writer.u8(header.family).u8(header.bits).u8(0).u8(0).u8(0);
  writer.u8(header.protocol ?? 0).u8(header.scope ?? 0).u8(header.type ?? 0).u32(0);
}

export interface KernelRoute {
  dst: Prefix;
  oif: number;
  gateway?: Uint8Array;
  priority?: number;
  table?: number;
  scope?: number;
  preferredSource?: Uint8Array;
  mtu?: number;
  advmss?: number;
}

function body(route: KernelRoute, header: { protocol?: number; scope: number; type?: number }) {
  return (writer: Writer) => {
    writeHeader(writer, { family: familyOf(route.dst.bytes), bits: route.dst.bits, ...header });
    routeAttrs.encode(writer, {
      // Version 4 refuses host bits; version 6 masks them silently. They are sent as they are.
      dst: route.dst.bits === 0 ? undefined : route.dst.bytes,
      preferredSource: route.preferredSource,
      gateway: route.gateway,
      table: route.table ?? RT_TABLE_MAIN,
      priority: route.priority,
      oif: route.oif,
      metrics: route.mtu || route.advmss ? { mtu: route.mtu, advmss: route.advmss } : undefined,
    });
  };
}

function routeName(route: KernelRoute): string {
  return `${route.dst.bytes.join(".")}/${route.dst.bits}`;
}

/** `ip route add`, without EXCL: as the reference plugins do, so that a second gateway joins the first. */
export function addRoute(socket: NetlinkSocket, route: KernelRoute): void {
  socket.request({
    what: `RTM_NEWROUTE ${routeName(route)}`,
    type: RTM_NEWROUTE,
    flags: NLM_F_CREATE,
    table: routeAttrs,
    fixedBytes: HEADER_BYTES,
    body: body(route, { protocol: RTPROT_BOOT, scope: route.scope ?? RT_SCOPE_UNIVERSE, type: RTN_UNICAST }),
  });
}

/** `ip route del`; a route without scope matches any. */
export function delRoute(socket: NetlinkSocket, route: KernelRoute): "deleted" | "absent" {
  try {
    socket.request({
      what: `RTM_DELROUTE ${routeName(route)}`,
      type: RTM_DELROUTE,
      table: routeAttrs,
      fixedBytes: HEADER_BYTES,
      body: body(route, { scope: route.scope ?? RT_SCOPE_NOWHERE }),
    });
    return "deleted";
  } catch (error) {
    if (isNetlinkError(error, ESRCH)) return "absent";
    throw error;
  }
}

/** `ip route show table …` for one family. */
export function listRoutes(socket: NetlinkSocket, family: number, table = RT_TABLE_MAIN): KernelRoute[] {
  let routes: KernelRoute[] = [];
  socket.dump(
    {
      what: "RTM_GETROUTE dump",
      type: RTM_GETROUTE,
      body: (writer) => {
        writeHeader(writer, { family, bits: 0 });
        routeAttrs.encode(writer, { table });
      },
    },
    ({ type, payload }) => {
      if (type !== RTM_NEWROUTE) return;
      const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
      const values = routeAttrs.decode(payload.subarray(HEADER_BYTES));
      const inTable = values.table ?? view.getUint8(4);
      // Kernels before strict checking send every table and the cache.
      if (inTable !== table || (view.getUint32(8, true) & RTM_F_CLONED) !== 0) return;
      routes.push({
        dst: { bytes: values.dst ?? new Uint8Array(view.getUint8(0) === 2 ? 4 : 16), bits: view.getUint8(1) },
        oif: values.oif ?? 0,
        gateway: values.gateway,
        priority: values.priority,
        table: inTable,
        scope: view.getUint8(6),
        preferredSource: values.preferredSource,
        mtu: values.metrics?.mtu,
        advmss: values.metrics?.advmss,
      });
    },
    () => void (routes = []),
  );
  return routes;
}

/** Whether the destination is written with host bits, which version 4 does not take. */
export function hasHostBits(prefix: Prefix): boolean {
  return networkOf(prefix).some((byte, index) => byte !== prefix.bytes[index]);
}
