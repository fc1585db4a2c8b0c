/**
 * Static routes of the container: through a gateway, or routes that drop packets. The kernel removes routes through a link
 * with the link; DEL removes all routes first.
 *
 * Two networks of a container may have a route to one destination with one metric. As with netavark, routes through
 * different gateways or links exist side by side, and the kernel prefers the newest.
 */
import { AF_UNSPEC } from "../../ffi/socket/socket.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import type { Host } from "../../contract/host.ts";
import type { Owner } from "../../contract/owner.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import { addRoute, delRoute, isSameRoute, type KernelRoute, listRoutes } from "../../ffi/netlink/route/route.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import {
  RTN_BLACKHOLE,
  RTN_PROHIBIT,
  RTN_UNICAST,
  RTN_UNREACHABLE,
  RTPROT_STATIC,
} from "../../ffi/netlink/uapi/rtnetlink.ts";
import { parseAddress, parsePrefix } from "../../net/address.ts";
import { netlinkText } from "./shared/failure.ts";

const routeTypes = {
  unicast: RTN_UNICAST,
  blackhole: RTN_BLACKHOLE,
  unreachable: RTN_UNREACHABLE,
  prohibit: RTN_PROHIBIT,
} as const;
type RouteType = keyof typeof routeTypes;

interface StaticRoutesSpec {
  /**
   * Undefined for routes without a link, and when the kernel finds the link by the gateway. Then another network of the
   * container may have the same routes.
   */
  ifName?: string;
  owner: Owner;
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
  apply(spec, host) {
    const { route: socket } = host.container!, made: StaticRoute[] = [], oif = linkOf(spec, host);
    if (oif === undefined) throw new Error(`failed to add routes: there is no link ${spec.ifName}`);
    for (const route of spec.routes) {
      try {
        addRoute(socket, kernelRoute(route, oif));
        made.push(route);
      } catch (error) {
        // The same route exists, through the same link.
        if (isNetlinkError(error, EEXIST)) continue;
        undoAfter(error, () => staticRoutesKind.remove({ ...spec, routes: made }, host));
        throw new Error(`failed to add route (${textOf(route)}): ${netlinkText(error)}`, { cause: error });
      }
    }
  },
  verify: (spec, host) => missing(spec, host).map((route) => `route ${textOf(route)}${through(spec)} is missing`),
  remove(spec, host) {
    const oif = host.container && linkOf(spec, host);
    if (oif === undefined) return;
    const shared = ofOtherNetworks(spec, host);
    for (const route of spec.routes.toReversed()) {
      if (!shared.some((other) => Bun.deepEquals(other, route))) {
        delRoute(host.container!.route, kernelRoute(route, oif));
      }
    }
  },
  repair: (spec, host) => staticRoutesKind.apply({ ...spec, routes: missing(spec, host) }, host),
  describe: ({ routes, ...spec }) => `routes ${routes.map(textOf).join(", ")}${through(spec)}`,
};

export const staticRoutes = resource(staticRoutesKind);

function missing(spec: StaticRoutesSpec, host: Host): StaticRoute[] {
  const oif = linkOf(spec, host), present = listRoutes(host.container!.route, AF_UNSPEC);
  return spec.routes.filter((route) => {
    if (oif === undefined) return true;
    const wanted = kernelRoute(route, oif);
    return !present.some((each) => isSameRoute(oif === ANY_LINK ? { ...wanted, oif: each.oif } : wanted, each));
  });
}

/** Reads every ledger of the host; few containers have such routes. */
function ofOtherNetworks({ ifName, owner }: StaticRoutesSpec, host: Host): StaticRoute[] {
  if (ifName !== undefined) return [];
  return (host.recordedByOthers(staticRoutesKind.kind, owner) as StaticRoutesSpec[])
    .flatMap((other) => other.owner.containerId === owner.containerId ? other.routes : []);
}

const ANY_LINK = 0;

/** Undefined when the link is gone. */
function linkOf({ ifName }: StaticRoutesSpec, host: Host): number | undefined {
  return ifName === undefined ? ANY_LINK : linkIndex(host.container!.route, ifName);
}

function kernelRoute({ destination, gateway, metric, type }: StaticRoute, oif: number): KernelRoute {
  return {
    dst: parsePrefix(destination)!,
    oif,
    gateway: gateway === undefined ? undefined : parseAddress(gateway),
    priority: metric,
    type: routeTypes[type],
    protocol: RTPROT_STATIC,
  };
}

function through({ ifName }: Pick<StaticRoutesSpec, "ifName">): string {
  return ifName === undefined ? "" : ` through ${ifName}`;
}

function textOf({ destination, gateway, metric, type }: StaticRoute): string {
  const via = gateway === undefined ? type : `via ${gateway}`;
  return `${destination} ${via}${metric === undefined ? "" : ` metric ${metric}`}`;
}
