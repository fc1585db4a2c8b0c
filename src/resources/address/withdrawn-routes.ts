/**
 * Routes out of one link of the container that are taken out of the main table, where they would compete with those of
 * other links. DEL does not put them back: the link goes next, and until then they would compete again.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { RT_TABLE_MAIN } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { addRouteImage, delRouteImage, listRouteImages } from "../../ffi/netlink/route/route-image.ts";
import { linkRoutesKind, type LinkRoutesSpec, textOf } from "./link-routes.ts";
import type { Host } from "../../contract/host.ts";

export type WithdrawnRoutesSpec = Omit<LinkRoutesSpec, "table">;

export const withdrawnRoutesKind: ResourceKind<WithdrawnRoutesSpec> = {
  kind: "withdrawn-routes",
  unmade: undefined,
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
      differences.push(`route ${textOf(image)} by ${ifName} is back in the main table`);
    }
    return differences;
  },
  repair: ({ routes }, host) => takeOut(routes, host),
  describe: (spec) => `not in ${linkRoutesKind.describe({ ...spec, table: RT_TABLE_MAIN })}`,
};

export const withdrawnRoutes = resource(withdrawnRoutesKind);

/** The last first: those that go through a gateway before those that reach it. */
function takeOut(routes: string[], host: Host): void {
  for (const image of routes.toReversed()) {
    delRouteImage(host.container!.route, Uint8Array.fromHex(image), RT_TABLE_MAIN);
  }
}

/** As many as can be. */
function putBack(routes: string[], host: Host): void {
  let failure: unknown;
  for (const image of routes) {
    try {
      addRouteImage(host.container!.route, Uint8Array.fromHex(image), RT_TABLE_MAIN);
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
}
