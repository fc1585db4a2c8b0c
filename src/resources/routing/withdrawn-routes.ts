/**
 * Routes through one link of the container that must not be in the main table, where they would compete with the routes
 * of other links. ADD deletes them there. DEL does not add them again, because the link is removed next; only a failed
 * ADD does.
 */
import { attemptAll } from "../../contract/failures.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { RT_TABLE_MAIN } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { addRouteImage, delRouteImage, listRouteImages } from "../../ffi/netlink/route/route-image.ts";
import { linkRoutesKind, type LinkRoutesSpec, routeImageText } from "./link-routes.ts";
import type { Host } from "../../contract/host.ts";

type WithdrawnRoutesSpec = Omit<LinkRoutesSpec, "table">;

export const withdrawnRoutesKind: ResourceKind<WithdrawnRoutesSpec> = {
  kind: "withdrawn-routes",
  apply(spec, host) {
    try {
      takeOut(spec.routes, host);
    } catch (error) {
      undoAfter(error, () => putBack(spec.routes, host));
      throw error;
    }
  },
  undo: ({ routes }, _made, host) => putBack(routes, host),
  remove: () => {},
  verify({ ifName, routes }, host) {
    const differences: string[] = [];
    for (const { bytes, route } of listRouteImages(host.container!.route)) {
      const image = bytes.toHex();
      if (route.table !== RT_TABLE_MAIN || !routes.includes(image)) continue;
      differences.push(`route ${routeImageText(image)} by ${ifName} is back in the main table`);
    }
    return differences;
  },
  repair: ({ routes }, host) => takeOut(routes, host),
  describe: (spec) => `not in ${linkRoutesKind.describe({ ...spec, table: RT_TABLE_MAIN })}`,
};

export const withdrawnRoutes = resource(withdrawnRoutesKind);

/** Deletes in reverse: routes through a gateway before the routes by which the gateway is reached. */
function takeOut(routes: string[], host: Host): void {
  for (const image of routes.toReversed()) {
    delRouteImage(host.container!.route, Uint8Array.fromHex(image), RT_TABLE_MAIN);
  }
}

/** Tries every route, whichever fail. */
function putBack(routes: string[], host: Host): void {
  attemptAll(routes.map((image) => () => {
    addRouteImage(host.container!.route, Uint8Array.fromHex(image), RT_TABLE_MAIN);
  }));
}
