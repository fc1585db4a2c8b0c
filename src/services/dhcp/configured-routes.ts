/** The routes of the configuration, which come and go with the lease of their family. Pure. */
import type { Route } from "../../cni/result.ts";
import { RT_SCOPE_LINK } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { isV6 } from "../../net/address.ts";
import type { FamilyName, LeaseOptions } from "./lease-options.ts";

/** What stands for the gateway of an IPv4 destination on the link. A main plugin would fill in the lease's router. */
export const NO_GATEWAY = "0.0.0.0";
const NO_GATEWAY6 = "::";

/** `router`: the gateway of routes that have none. Without it, their destinations are on the link. */
export function configuredRoutes(
  { routes = [], priority }: Pick<LeaseOptions, "routes" | "priority">,
  family: FamilyName,
  router?: string,
): Route[] {
  const ofFamily = routes.filter(({ dst }) => isV6(dst) === (family === "ipv6"));
  return onLinkFirst(ofFamily.map((route) => withMetric(throughRouter(route, router), priority)));
}

export function withMetric(route: Route, priority: number): Route {
  return priority === 0 || route.priority !== undefined ? route : { ...route, priority };
}

function throughRouter(route: Route, router: string | undefined): Route {
  // What has the scope of the link, or of the host, has no gateway.
  const { scope = 0, gw = scope < RT_SCOPE_LINK ? router : undefined } = route;
  if (!isOnLink({ gw })) return { ...route, gw };
  if (!isV6(route.dst)) return { ...route, gw: NO_GATEWAY, scope: route.scope ?? RT_SCOPE_LINK };
  const { gw: _, ...rest } = route;
  return rest;
}

/** Whether the destination is on the link. */
export function isOnLink({ gw }: Pick<Route, "gw">): boolean {
  return gw === undefined || gw === NO_GATEWAY || gw === NO_GATEWAY6;
}

/** Routes on the link come first: the others may need them to reach their gateways. */
export function onLinkFirst(routes: readonly Route[]): Route[] {
  return routes.toSorted((one, other) => Number(isOnLink(other)) - Number(isOnLink(one)));
}
