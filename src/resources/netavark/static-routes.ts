/**
 * Routes of the container: by way of a gateway, or ones that drop packets. The kernel drops those through a link with the
 * link; DEL removes all of them first.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { addRoute, delRoute, isSameRoute, type KernelRoute, listRoutes } from "../../ffi/netlink/route/route.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import {
  AF_UNSPEC,
  RTN_BLACKHOLE,
  RTN_PROHIBIT,
  RTN_UNICAST,
  RTN_UNREACHABLE,
  RTPROT_STATIC,
} from "../../ffi/netlink/uapi/rtnetlink.ts";
import { parseAddress, parsePrefix } from "../../net/address.ts";
import { netlinkText } from "./shared/netavark-text.ts";

export const routeTypes = {
  unicast: RTN_UNICAST,
  blackhole: RTN_BLACKHOLE,
  unreachable: RTN_UNREACHABLE,
  prohibit: RTN_PROHIBIT,
} as const;
export type RouteType = keyof typeof routeTypes;

export interface StaticRoutesSpec {
  /** Undefined: the kernel finds the link by the gateway. */
  ifName?: string;
  routes: StaticRoute[];
}

export interface StaticRoute {
  destination: string;
  gateway?: string;
  metric?: number;
  type: RouteType;
}

export const staticRoutesKind: ResourceKind<StaticRoutesSpec> = {
  kind: "static-routes",
  unmade: undefined,
  apply(spec, host) {
    const { route: socket } = host.container!, made: StaticRoute[] = [];
    for (const route of spec.routes) {
      try {
        addRoute(socket, kernelRoute(spec, route, host), { alone: true });
        made.push(route);
      } catch (error) {
        if (isNetlinkError(error, EEXIST)) continue;
        undoAfter(error, () => staticRoutesKind.remove({ ...spec, routes: made }, host));
        throw new Error(`failed to add route (${textOf(route)}): ${netlinkText(error)}`, { cause: error });
      }
    }
  },
  verify(spec, host) {
    const present = listRoutes(host.container!.route, AF_UNSPEC);
    return spec.routes.filter((wanted) => {
      const { oif: _, ...rest } = kernelRoute(spec, wanted, host);
      return !present.some((route) => isSameRoute({ ...rest, oif: route.oif }, route));
    }).map((route) => `route ${textOf(route)} is missing`);
  },
  remove(spec, host) {
    if (host.container === undefined) return;
    for (const route of spec.routes.toReversed()) {
      delRoute(host.container.route, kernelRoute(spec, route, host));
    }
  },
  repair: (spec, host) => staticRoutesKind.apply(spec, host),
  describe: ({ routes }) => `routes ${routes.map(textOf).join(", ")}`,
};

export const staticRoutes = resource(staticRoutesKind);

function kernelRoute({ ifName }: StaticRoutesSpec, route: StaticRoute, host: Host): KernelRoute {
  const oif = ifName === undefined || route.type !== "unicast" ? undefined : linkIndex(host.container!.route, ifName);
  return {
    dst: parsePrefix(route.destination)!,
    oif: oif ?? 0,
    gateway: route.gateway === undefined ? undefined : parseAddress(route.gateway),
    priority: route.metric,
    type: routeTypes[route.type],
    protocol: RTPROT_STATIC,
  };
}

function textOf({ destination, gateway, metric, type }: StaticRoute): string {
  const via = gateway === undefined ? type : `via ${gateway}`;
  return `${destination} ${via}${metric === undefined ? "" : ` metric ${metric}`}`;
}
