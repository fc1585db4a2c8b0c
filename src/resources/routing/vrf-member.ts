/**
 * Membership of a container's link in a VRF. DEL ends it, and does nothing when the link or the namespace is gone, or the
 * link is in another VRF. DEL restores no routes, because the link is removed next.
 *
 * When a link joins a VRF, the kernel takes it down and up again. It loses its routes, and its IPv6 addresses unless
 * `keep_addr_on_down` is set. ADD restores both, the routes in the VRF's table.
 */
import { AF_INET6 } from "../../ffi/socket/socket.ts";
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { awaitChange } from "../../ffi/netlink/events.ts";
import { addAddress, listAddresses } from "../../ffi/netlink/route/address.ts";
import { getLink, type Link, linkIndex, setLink } from "../../ffi/netlink/route/link.ts";
import { listRoutes } from "../../ffi/netlink/route/route.ts";
import { addRouteImage, delRouteImage, listRouteImages, routesOfLink } from "../../ffi/netlink/route/route-image.ts";
import { IF_OPER_UNKNOWN, IF_OPER_UP } from "../../ffi/netlink/uapi/if-link.ts";
import { RT_TABLE_MAIN, RTNLGRP_IPV6_ROUTE, RTPROT_KERNEL } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress, formatPrefix, isLinkLocal, parsePrefix } from "../../net/address.ts";
import { linkRoutesKind } from "./link-routes.ts";
import type { Container } from "../../contract/host.ts";

interface VrfMemberSpec extends AddressesAndRoutes {
  ifName: string;
  vrf: string;
  /** The VRF's table. Undefined when another program did ADD. */
  table?: number;
}

/** What the link had before and may lose. */
interface AddressesAndRoutes {
  /** Its IPv6 addresses in CIDR notation. */
  addresses: string[];
  /** Its routes in the main table as hexadecimal images (route-image.ts), routes to gateways first. */
  routes: string[];
}

/** The reference plugin polls for the same time. */
const PATIENCE_MS = 2550;

export const vrfMemberKind: ResourceKind<VrfMemberSpec> = {
  kind: "vrf-member",
  apply(spec, host) {
    const { ifName, vrf, table } = spec;
    const container = host.container!;
    const link = getLink(container.route, ifName);
    if (link === undefined) throw new CniError(INTERNAL, `cmdAdd failed: could not get link by name ${ifName}`);
    try {
      setLink(container.route, link, { master: linkIndex(container.route, vrf) });
      restore(spec, table!, link, container);
      if (link.up && [IF_OPER_UP, IF_OPER_UNKNOWN].includes(link.operstate)) awaitAddresses(spec, container);
    } catch (error) {
      undoAfter(error, () => vrfMemberKind.undo!(spec, undefined, host));
      const text = `cmdAdd failed: could not set vrf ${vrf} as master of ${ifName}: ${(error as Error).message}`;
      throw new CniError(INTERNAL, text, "", { cause: error });
    }
  },
  undo(spec, _made, host) {
    vrfMemberKind.remove(spec, host);
    const link = getLink(host.container!.route, spec.ifName);
    if (link !== undefined) restore(spec, RT_TABLE_MAIN, link, host.container!);
  },
  remove({ ifName, vrf }, host) {
    const route = host.container?.route;
    const link = route && getLink(route, ifName);
    if (link?.master !== undefined && link.master === linkIndex(route!, vrf)) setLink(route!, link, { master: 0 });
  },
  verify(spec, host) {
    const { ifName, vrf, table, routes } = spec;
    const { route } = host.container!;
    const master = getLink(route, ifName)?.master;
    if (master === undefined || master !== linkIndex(route, vrf)) {
      return [`failed to find ${ifName} associated to vrf ${vrf}`];
    }
    return table === undefined ? [] : linkRoutesKind.verify({ ifName, table, routes }, host);
  },
  repair(spec, host) {
    const container = host.container!;
    const link = getLink(container.route, spec.ifName);
    if (link === undefined) return;
    const master = linkIndex(container.route, spec.vrf);
    if (link.master !== master) setLink(container.route, link, { master });
    restore(spec, spec.table!, link, container);
  },
  describe: ({ ifName, vrf }) => `${ifName} in VRF ${vrf}`,
};

export const vrfMember = resource(vrfMemberKind);

export function addressesAndRoutesOf({ index }: Link, { route }: Container): AddressesAndRoutes {
  const addresses: string[] = [], routes: string[] = [];
  for (const address of listAddresses(route, index, AF_INET6)) {
    if (!isLinkLocal(address.bytes)) addresses.push(formatPrefix(address));
  }
  for (const { bytes } of routesOfLink(listRouteImages(route), index, RT_TABLE_MAIN)) routes.push(bytes.toHex());
  return { addresses, routes };
}

/** Deletes routes that the kernel made for an address and that the link did not have: another plugin had removed them. */
function restore(
  { addresses, routes }: AddressesAndRoutes,
  table: number,
  { index }: Link,
  { route: socket }: Container,
): void {
  const present = listAddresses(socket, index, AF_INET6).map(formatPrefix);
  for (const address of addresses) {
    if (!present.includes(address)) addAddress(socket, index, parsePrefix(address)!, { skipDad: true });
  }
  for (const { bytes, protocol } of routesOfLink(listRouteImages(socket), index, table)) {
    if (protocol === RTPROT_KERNEL && !routes.includes(bytes.toHex())) delRouteImage(socket, bytes, table);
  }
  for (const image of routes) addRouteImage(socket, Uint8Array.fromHex(image), table);
}

/** The kernel adds the local route of an address shortly after the address. Until then the address is unreachable. */
function awaitAddresses({ addresses, table }: VrfMemberSpec, { route, inside }: Container): void {
  const missing = () => {
    const present = listRoutes(route, AF_INET6, table).map(({ dst }) => formatPrefix(dst));
    return addresses.find((address) => !present.includes(`${formatAddress(parsePrefix(address)!.bytes)}/128`));
  };
  if (addresses.length === 0 || awaitChange(RTNLGRP_IPV6_ROUTE, PATIENCE_MS, () => missing() === undefined, inside)) {
    return;
  }
  throw new Error(`the kernel does not route to ${missing()}`);
}
