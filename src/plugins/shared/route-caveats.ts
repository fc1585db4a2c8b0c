/** Routes of `ipam` that the plugin before cannot add to an address of these subnets. */
import type { Route } from "../../cni/result.ts";
import type { Caveat } from "../../contract/plugin.ts";
import { describeRoute } from "../../ffi/netlink/route/route.ts";
import type { Prefix } from "../../net/address.ts";
import { kernelRoutes } from "../../resources/address/addressing/addressing.ts";
import { refusedRoutes } from "../../resources/address/addressing/refused.ts";

export function refusedRouteCaveats(routes: readonly Route[], subnets: readonly Prefix[]): Caveat[] {
  const withGateway = routes.filter(({ gw }) => gw !== undefined);
  const written = kernelRoutes({ addresses: [], routes: withGateway }, 0);
  return refusedRoutes(written, subnets).map(({ route, reason }) => ({
    key: `ipam.routes[${routes.indexOf(withGateway[written.indexOf(route)]!)}]`,
    text: `${describeRoute(route)} cannot be added: ${reason}`,
    isRefused: true,
  }));
}
