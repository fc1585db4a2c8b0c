/** The routes that a lease brings: for the result of ADD, and for the link when they change later. Pure. */
import { formatAddress, formatPrefix } from "../../../net/address.ts";
import type { Route } from "../../../cni/result.ts";
import type { LeaseOptions } from "../../lease-options.ts";
import type { Offered } from "../message/offer.ts";

const ON_LINK = 253, DEFAULT = "0.0.0.0/0", NOWHERE = "0.0.0.0";

/** The reference plugin's routes: those of option 121, or those of option 33 and the default route. */
export function routesOf(
  offered: Offered,
  { ignored, priority }: Pick<LeaseOptions, "ignored" | "priority">,
): Route[] {
  const { routes = [], routers, isClassless } = offered, found: Route[] = [];
  const add = (route: Route) => found.push(priority === 0 ? route : { ...route, priority });
  if (!ignored.includes("routes")) {
    for (const { destination, gateway } of routes) {
      const dst = formatPrefix(destination);
      add(gateway === undefined ? { dst, gw: NOWHERE, scope: ON_LINK } : { dst, gw: formatAddress(gateway) });
    }
  }
  const [router] = routers;
  if (!isClassless && router !== undefined && !ignored.includes("routers")) {
    add({ dst: DEFAULT, gw: formatAddress(router) });
  }
  return found;
}
