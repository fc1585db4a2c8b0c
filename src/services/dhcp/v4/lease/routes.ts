/** The routes that a lease brings: for the result of ADD, and for the link when they change later. Pure. */
import type { Route } from "../../../../cni/result.ts";
import { RT_SCOPE_LINK, RT_TABLE_MAIN, RT_TABLE_UNSPEC } from "../../../../ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress, formatPrefix } from "../../../../net/address.ts";
import { configuredRoutes, NO_GATEWAY, onLinkFirst, withMetric } from "../../configured-routes.ts";
import type { LeaseOptions } from "../../lease-options.ts";
import type { Offered } from "../message/offer.ts";

const DEFAULT = "0.0.0.0/0";

/** The server's routes and the configuration's, which win where both have the same destination. */
export function routesOf(
  offered: Offered,
  options: Pick<LeaseOptions, "ignored" | "priority" | "routes">,
): Route[] {
  const given = givenRoutes(offered, options), [first] = offered.routers;
  const router = first === undefined || options.ignored.includes("routers")
    // Option 121 may be the only one that names a router.
    ? given.find(({ dst }) => dst === DEFAULT)?.gw
    : formatAddress(first);
  const configured = configuredRoutes(options, "ipv4", router);
  const isReplaced = ({ dst }: Route) => configured.some((one) => one.dst === dst && isInMainTable(one));
  return onLinkFirst([...given.filter((route) => !isReplaced(route)), ...configured]);
}

/** The reference plugin's routes: those of option 121, or those of option 33 and the default route. */
function givenRoutes(
  { routes = [], routers: [router], isClassless }: Offered,
  { ignored, priority }: Pick<LeaseOptions, "ignored" | "priority">,
): Route[] {
  const found: Route[] = [];
  if (!ignored.includes("routes")) {
    for (const { destination, gateway } of routes) {
      const dst = formatPrefix(destination);
      if (gateway === undefined) found.push({ dst, gw: NO_GATEWAY, scope: RT_SCOPE_LINK });
      else found.push({ dst, gw: formatAddress(gateway) });
    }
  }
  if (!isClassless && router !== undefined && !ignored.includes("routers")) {
    found.push({ dst: DEFAULT, gw: formatAddress(router) });
  }
  return found.map((route) => withMetric(route, priority));
}

/** Where the server's routes are. */
function isInMainTable({ table = RT_TABLE_MAIN }: Route): boolean {
  return table === RT_TABLE_MAIN || table === RT_TABLE_UNSPEC;
}
