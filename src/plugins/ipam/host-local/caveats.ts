/** Routes that the plugin before cannot add: what `plan` says before each container, `status` says without one. */
import { field, isObject } from "../../../cni/json.ts";
import type { Caveat, Placed } from "../../../contract/plugin.ts";
import { describeRoute } from "../../../ffi/netlink/route/route.ts";
import { kernelRoutes } from "../../../resources/address/addressing/addressing.ts";
import { refusedRoutes } from "../../../resources/address/addressing/refused.ts";
import { subnetsOf } from "../../shared/way-out.ts";
import type { HostLocalConf } from "./host-local.schema.ts";

export function hostLocalCaveats({ ipam }: HostLocalConf, { own, document }: Placed): Caveat[] {
  const subnets = subnetsOf(document);
  // A plugin of another make may add routes in another way.
  if (own === undefined || subnets.length === 0 || mayHaveMore(document)) return [];
  const routes = ipam?.routes ?? [], withGateway = routes.filter(({ gw }) => gw !== undefined);
  const written = kernelRoutes({ addresses: [], routes: withGateway }, 0);
  return refusedRoutes(written, subnets).map(({ route, reason }) => ({
    key: `ipam.routes[${routes.indexOf(withGateway[written.indexOf(route)]!)}]`,
    text: `${describeRoute(route)} cannot be added: ${reason}`,
    isRefused: true,
  }));
}

/** Addresses that only ADD knows. */
function mayHaveMore(document: Placed["document"]): boolean {
  const capabilities = field(document, "capabilities");
  return (isObject(capabilities) && field(capabilities, "ipRanges") === true) ||
    field(document, "useInterfaceNetwork") === true;
}
