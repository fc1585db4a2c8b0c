/**
 * What the host has set up on a device, for `useInterfaceNetwork`: the container gets a copy, because the kernel drops all of
 * it when the device moves. Like the reference plugin, leaves out what the kernel or a router gives by itself, and what
 * expires: link-local and temporary IPv6 addresses, their routes, routes of the kernel and of router advertisements.
 */
import { AF_UNSPEC } from "../../../ffi/socket/socket.ts";
import { listAddresses } from "../../../ffi/netlink/route/address.ts";
import {
  listRouteImages,
  type RouteImage,
  routesOfLink,
  throughLink,
} from "../../../ffi/netlink/route/route-image.ts";
import { listRoutingRules } from "../../../ffi/netlink/route/rule.ts";
import {
  RT_SCOPE_UNIVERSE,
  RT_TABLE_LOCAL,
  RT_TABLE_MAIN,
  RTPROT_KERNEL,
  RTPROT_RA,
} from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { contains, formatAddress, formatPrefix, isLinkLocal } from "../../../net/address.ts";
import { NO_GATEWAY } from "../../../resources/address/addressing/addressing.ts";
import { linkRoutes } from "../../../resources/routing/link-routes.ts";
import { sourceRule } from "../../../resources/routing/source-rule.ts";
import type { Attachment, PluginConfig } from "../../../contract/plugin.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { IpConfig, Route } from "../../../cni/result.ts";
import type { Link } from "../../../ffi/netlink/route/link.ts";

export interface InterfaceNetwork {
  ips: IpConfig[];
  routes: Route[];
  /** To be made when the link has the addresses. */
  resources: Resource<unknown>[];
}

/** `newIndex` is the device's in the container. */
export function networkOn(
  device: Link,
  newIndex: number,
  { host, ifName }: Attachment<PluginConfig>,
): InterfaceNetwork {
  const { route: socket, container } = host;
  const addresses = listAddresses(socket, device.index).filter(({ bytes, scope, lifetime }) =>
    scope === RT_SCOPE_UNIVERSE && (bytes.length === 4 || lifetime.valid === Infinity)
  );
  const images = copiedRoutes(listRouteImages(socket), device.index);
  const tables = new Set(images.map(({ route }) => route.table));
  const present = new Set(listRoutingRules(container!.route, AF_UNSPEC).map(({ bytes }) => bytes.toHex()));
  const rules = listRoutingRules(socket, AF_UNSPEC).filter((rule) =>
    rule.source !== undefined && tables.has(rule.table) && !present.has(rule.bytes.toHex()) &&
    addresses.some(({ bytes }) => contains(rule.source!, bytes))
  );
  return {
    ips: addresses.map((address) => ({ address: formatPrefix(address), interface: 0 })),
    routes: images.map(({ route }) => routeInResult(route)),
    resources: [
      ...[...tables].map((table) =>
        linkRoutes({
          ifName,
          table,
          routes: images.filter(({ route }) => route.table === table)
            .map(({ bytes }) => throughLink(bytes, newIndex).toHex()),
        })
      ),
      ...rules.map(({ source, table, priority, bytes }) =>
        sourceRule({ source: formatPrefix(source!), table, priority, image: bytes.toHex() })
      ),
    ],
  };
}

/**
 * For CHECK, which finds copied routes among the others of prevResult. They say their tables: those without a gateway have
 * none, whatever the lease says, and those of the main table may have been moved by a later plugin.
 */
export function asExpected(route: Route): Route {
  const { gw, table } = route;
  if (table === undefined) return route;
  return { ...route, gw: gw ?? NO_GATEWAY, table: table === RT_TABLE_MAIN ? undefined : table };
}

/** Routes of the main table come first: they may lead to the gateways of the other tables' routes. */
function copiedRoutes(all: readonly RouteImage[], index: number): RouteImage[] {
  const others = all.map(({ route }) => route.table).filter((table) => table !== RT_TABLE_LOCAL);
  return [...new Set([RT_TABLE_MAIN, ...others])].flatMap((table) => routesOfLink(all, index, table)).filter(
    ({ route: { dst, hops }, protocol }) =>
      hops === undefined && protocol !== RTPROT_KERNEL && protocol !== RTPROT_RA &&
      (dst.bits === 0 || !isLinkLocal(dst.bytes)),
  );
}

function routeInResult({ dst, gateway, priority, table, scope }: RouteImage["route"]): Route {
  const gw = gateway && formatAddress(gateway);
  return { dst: formatPrefix(dst), gw, priority: priority || undefined, table, scope: scope || undefined };
}
