/** The way from the host to a container: the route that the kernel makes with a gateway's address. */
import { familyOf } from "../../../ffi/netlink/route/address.ts";
import { getLink, type Link } from "../../../ffi/netlink/route/link.ts";
import { addRoute, isSameRoute, type KernelRoute, listRoutes } from "../../../ffi/netlink/route/route.ts";
import { linkTo } from "../../../ffi/netlink/route/route-lookup.ts";
import { IP6_RT_PRIO_ADDRCONF, RT_SCOPE_LINK, RTPROT_KERNEL } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import {
  formatAddress,
  formatPrefix,
  isSameBytes,
  networkOf,
  nextAddress,
  parsePrefix,
  type Prefix,
} from "../../../net/address.ts";
import type { Host } from "../../../contract/host.ts";

interface Way {
  to: Uint8Array;
  /** On the host. */
  link: Pick<Link, "name" | "index">;
  /** That leads there. */
  route: KernelRoute;
}

/** The link of the host that has the gateway's address, and this address in CIDR notation. */
export interface GatewayOnHost {
  ifName: string;
  address: string;
  /** The container's address. Without it, another one of the subnet stands for it. */
  container?: string;
}

export function mendWay(gateway: GatewayOnHost, host: Host): void {
  const way = wayBy(gateway, host);
  if (way !== undefined && isLost(way, host)) addRoute(host.route, way.route);
}

/** One line when the host lacks the route, or has it, and another one is in front. */
export function wayDifference(gateway: GatewayOnHost, host: Host): string[] {
  const way = wayBy(gateway, host);
  return way === undefined ? [] : differenceOfWay(way, host);
}

export function differenceOfWay(way: Way, host: Host): string[] {
  const { to, link, route } = way, taken = linkTo(host.route, to);
  if (taken === link.name) return [];
  if (isLost(way, host)) return [`the host's route to ${formatPrefix(route.dst)} by ${link.name} is missing`];
  const address = formatAddress(to), where = taken === undefined ? "find no way" : `leave by ${taken}`;
  return [
    `the host's packets to ${address} ${where}, not by ${link.name}: another route is in front, as ` +
    `'ip route get ${address}' shows`,
  ];
}

function isLost({ to, link, route }: Way, host: Host): boolean {
  if (linkTo(host.route, to) === link.name) return false;
  return !listRoutes(host.route, familyOf(to)).some((present) => isSameRoute(route, present));
}

/** Undefined where the link's own state says it all. */
function wayBy({ ifName, address, container }: GatewayOnHost, host: Host): Way | undefined {
  const gateway = parsePrefix(address)!, link = getLink(host.route, ifName);
  // A link of a VRF has its routes in the VRF's table.
  if (link === undefined || !link.up || link.master !== undefined) return undefined;
  const dst = { bytes: networkOf(gateway), bits: gateway.bits }, isV4 = dst.bytes.length === 4;
  if (dst.bits === dst.bytes.length * 8) return undefined;
  const ofKernel = isV4
    ? { scope: RT_SCOPE_LINK, preferredSource: gateway.bytes }
    : { priority: IP6_RT_PRIO_ADDRCONF };
  const to = container === undefined ? otherThan(gateway) : parsePrefix(container)!.bytes;
  return { to, link, route: { dst, oif: link.index, protocol: RTPROT_KERNEL, ...ofKernel } };
}

function otherThan(gateway: Prefix): Uint8Array {
  const first = nextAddress(networkOf(gateway));
  return isSameBytes(first, gateway.bytes) ? nextAddress(first) : first;
}
