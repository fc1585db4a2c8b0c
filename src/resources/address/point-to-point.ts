/**
 * The routes of a link with nothing but a gateway at its other end: each gateway has a route of its own, and even the
 * neighbours in the container's subnet are reached through it.
 */
import { delRoute, type KernelRoute } from "../../ffi/netlink/route/route.ts";
import { RT_SCOPE_LINK } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { compareAddresses, networkOf, parseAddress, parsePrefix, type Prefix } from "../../net/address.ts";
import type { NetlinkSocket } from "../../ffi/netlink/socket.ts";
import type { AddressingSpec } from "./addressing.ts";

/** Of the routes that the kernel makes for addresses of version 6. */
const CONNECTED_PRIORITY = 256;

/** `direct` ones are needed by all others. */
export function pointToPointRoutes(
  spec: AddressingSpec,
  oif: number,
): { direct: KernelRoute[]; subnets: KernelRoute[] } {
  const direct: KernelRoute[] = [], subnets: KernelRoute[] = [];
  for (const { address, gateway: text } of spec.addresses) {
    const gateway = text === undefined ? undefined : parseAddress(text);
    if (gateway === undefined) continue;
    const prefix = parsePrefix(address)!;
    const subnet = subnetOf(prefix);
    const to = { oif, preferredSource: prefix.bytes };
    addOnce(direct, { ...to, dst: { bytes: gateway, bits: gateway.length * 8 }, scope: RT_SCOPE_LINK });
    if (subnet !== undefined) addOnce(subnets, { ...to, dst: subnet, gateway });
  }
  return { direct, subnets };
}

/** Takes away the routes that came with the addresses. */
export function dropConnectedRoutes(spec: AddressingSpec, oif: number, socket: NetlinkSocket): void {
  for (const { address } of spec.addresses) {
    const prefix = parsePrefix(address)!;
    const dst = { bytes: networkOf(prefix), bits: prefix.bits };
    const v4 = dst.bytes.length === 4;
    delRoute(socket, {
      dst,
      oif,
      scope: v4 ? RT_SCOPE_LINK : undefined,
      priority: v4 ? undefined : CONNECTED_PRIORITY,
    });
  }
}

/** Undefined when there is nobody in it but the container. */
function subnetOf(prefix: Prefix): Prefix | undefined {
  const { bytes, bits } = prefix;
  return bits === bytes.length * 8 ? undefined : { bytes: networkOf(prefix), bits };
}

/** Addresses may share a gateway, and a subnet. */
function addOnce(routes: KernelRoute[], route: KernelRoute): void {
  const { bytes, bits } = route.dst;
  const isThere = ({ dst }: KernelRoute) => dst.bits === bits && compareAddresses(dst.bytes, bytes) === 0;
  if (!routes.some(isThere)) routes.push(route);
}
