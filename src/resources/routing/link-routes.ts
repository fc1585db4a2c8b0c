/**
 * Routes through one link of the container in one routing table, recorded as images (route-image.ts). The kernel drops
 * them with the link; DEL removes them first, in case the link stays. Absent routes, or a namespace that is gone, count
 * as removed.
 */
import { AF_UNSPEC } from "../../ffi/socket/socket.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { describeRoute, eachHop, isSameRoute, listRoutes } from "../../ffi/netlink/route/route.ts";
import { addRouteImage, delRouteImage, readImage } from "../../ffi/netlink/route/route-image.ts";
import { RT_TABLE_MAIN, RT_TABLE_UNSPEC } from "../../ffi/netlink/uapi/rtnetlink.ts";
import type { Host } from "../../contract/host.ts";

export interface LinkRoutesSpec {
  ifName: string;
  table: number;
  /** Images in hexadecimal. Routes without a gateway come first: the kernel resolves gateways by them. */
  routes: string[];
}

export const linkRoutesKind: ResourceKind<LinkRoutesSpec> = {
  kind: "link-routes",
  apply(spec, host) {
    const added: string[] = [];
    try {
      for (const image of spec.routes) {
        added.push(image); // even if only the kernel's answer is lost
        if (addRouteImage(host.container!.route, Uint8Array.fromHex(image), spec.table) === "present") added.pop();
      }
    } catch (error) {
      undoAfter(error, () => linkRoutesKind.remove({ ...spec, routes: added }, host));
      throw error;
    }
  },
  verify(spec, host) {
    const differences: string[] = [];
    for (const image of missingRoutes(spec, host)) {
      differences.push(`route ${routeImageText(image)} by ${spec.ifName} is missing in table ${spec.table}`);
    }
    return differences;
  },
  remove({ table, routes }, host) {
    if (host.container === undefined) return;
    for (const image of routes.toReversed()) delRouteImage(host.container.route, Uint8Array.fromHex(image), table);
  },
  repair: (spec, host) => linkRoutesKind.apply({ ...spec, routes: missingRoutes(spec, host) }, host),
  describe: ({ ifName, table, routes }) => `table ${table} for ${ifName}: ${routes.map(routeImageText).join(", ")}`,
};

export const linkRoutes = resource(linkRoutesKind);

function missingRoutes({ table, routes }: LinkRoutesSpec, host: Host): string[] {
  // Later plugins of the chain, sbr and vrf, move routes out of the main table.
  const present = listRoutes(host.container!.route, AF_UNSPEC, table === RT_TABLE_MAIN ? RT_TABLE_UNSPEC : table);
  return routes.filter((image) => {
    const hops = eachHop(readImage(Uint8Array.fromHex(image), table));
    return !hops.every((wanted) => present.some((route) => isSameRoute(wanted, route)));
  });
}

export function routeImageText(image: string): string {
  return describeRoute(readImage(Uint8Array.fromHex(image), 0));
}
