/** The routes of a lease on its link. */
import type { Route } from "../../../cni/result.ts";
import { collectFailures } from "../../../contract/failures.ts";
import { EEXIST } from "../../../ffi/errno.ts";
import { addRoute, delRoute, type KernelRoute } from "../../../ffi/netlink/route/route.ts";
import { isNetlinkError } from "../../../ffi/netlink/socket.ts";
import { parseAddress, parsePrefix } from "../../../net/address.ts";
import { isOnLink } from "../configured-routes.ts";
import type { NetnsHandle } from "./netns-handle.ts";

/** What the kernel gives IPv6 routes that say none. Without it, a deletion would take the kernel's own route, too. */
const METRIC_OF_IPV6 = 1024;

export function kernelRoutesOfLease(routes: readonly Route[], oif: number): KernelRoute[] {
  return routes.map((route) => {
    const { gw, priority, table, scope, mtu, advmss } = route, dst = parsePrefix(route.dst)!;
    const gateway = isOnLink(route) ? undefined : parseAddress(gw!);
    const metric = priority || (dst.bytes.length === 16 ? METRIC_OF_IPV6 : undefined);
    return { dst, gateway, oif, priority: metric, table, scope, mtu, advmss };
  });
}

export function includesRoute(routes: readonly KernelRoute[], route: KernelRoute): boolean {
  return routes.some((one) => keyOf(one) === keyOf(route));
}

function keyOf({ dst, gateway, priority, table }: KernelRoute): string {
  return `${dst.bytes}/${dst.bits} ${gateway} ${priority} ${table}`;
}

/** Returns what was thrown: a route whose gateway cannot be reached does not keep the others away. */
export function addRoutes(handle: NetnsHandle, routes: readonly KernelRoute[]): unknown[] {
  return collectFailures(routes, (one) => addUnlessThere(handle, one));
}

/** A route of somebody else to the same destination stays the only one. */
function addUnlessThere({ route }: NetnsHandle, one: KernelRoute): void {
  try {
    addRoute(route, one, { alone: true });
  } catch (error) {
    if (!isNetlinkError(error, EEXIST)) throw error;
  }
}

export function removeRoutes({ route }: NetnsHandle, routes: readonly KernelRoute[]): void {
  for (const one of routes) delRoute(route, one);
}
