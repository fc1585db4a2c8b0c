/**
 * The routes of a point-to-point link, whose other end is a gateway. Each gateway has a host route, and the container
 * reaches even the rest of its own subnet through the gateway.
 */
import { delRoute, type KernelRoute } from "../../../ffi/netlink/route/route.ts";
import { IP6_RT_PRIO_ADDRCONF, RT_SCOPE_LINK } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { compareAddresses, networkOf, parseAddress, parsePrefix } from "../../../net/address.ts";
import type { NetlinkSocket } from "../../../ffi/netlink/socket.ts";

/** An address in CIDR notation, and the gateway at the other end. */
interface Endpoint {
  address: string;
  gateway?: string;
}

/** Add the `direct` routes first: the kernel resolves the gateways of all others by them. */
export function pointToPointRoutes(
  endpoints: readonly Endpoint[],
  oif: number,
): { direct: KernelRoute[]; subnets: KernelRoute[] } {
  const direct: KernelRoute[] = [], subnets: KernelRoute[] = [];
  for (const { address, gateway: text } of endpoints) {
    const gateway = text === undefined ? undefined : parseAddress(text);
    if (gateway === undefined) continue;
    const prefix = parsePrefix(address)!, { bytes, bits } = prefix;
    const to = { oif, preferredSource: bytes };
    addOnce(direct, { ...to, dst: { bytes: gateway, bits: gateway.length * 8 }, scope: RT_SCOPE_LINK });
    if (bits < bytes.length * 8) addOnce(subnets, { ...to, dst: { bytes: networkOf(prefix), bits }, gateway });
  }
  return { direct, subnets };
}

/** Deletes the routes that the kernel added with the addresses. */
export function dropConnectedRoutes(endpoints: readonly Endpoint[], oif: number, socket: NetlinkSocket): void {
  for (const { address } of endpoints) {
    const prefix = parsePrefix(address)!;
    const dst = { bytes: networkOf(prefix), bits: prefix.bits };
    const v4 = dst.bytes.length === 4;
    delRoute(socket, {
      dst,
      oif,
      scope: v4 ? RT_SCOPE_LINK : undefined,
      priority: v4 ? undefined : IP6_RT_PRIO_ADDRCONF,
    });
  }
}

/** Several addresses may have the same gateway or subnet. */
function addOnce(routes: KernelRoute[], route: KernelRoute): void {
  const { bytes, bits } = route.dst;
  const isPresent = ({ dst }: KernelRoute) => dst.bits === bits && compareAddresses(dst.bytes, bytes) === 0;
  if (!routes.some(isPresent)) routes.push(route);
}
