/**
 * A lease on the link: the address with the lease's lifetime, routes, MTU. The kernel removes the address when the lease
 * is over, whether or not we live.
 *
 * ADD leaves the address and the routes to the plugin that made the link, which would refuse one that is there. Only the
 * lifetime is set, as soon as the address appears. Later changes are made here.
 */
import { throwJoined } from "../../../contract/failures.ts";
import { AF_INET, AF_INET6 } from "../../../ffi/socket/socket.ts";
import { delAddress, lendAddress } from "../../../ffi/netlink/route/address.ts";
import { setLink } from "../../../ffi/netlink/route/link.ts";
import type { KernelRoute } from "../../../ffi/netlink/route/route.ts";
import { isLinkLocal, isSameBytes } from "../../../net/address.ts";
import { routesOf } from "../v4/lease/routes.ts";
import type { Offered } from "../v4/message/offer.ts";
import type { LeaseOptions } from "../lease-options.ts";
import { announce } from "./arp.ts";
import { addRoutes, includesRoute, kernelRoutesOfLease, removeRoutes } from "./kernel-routes.ts";
import type { NetnsHandle } from "./netns-handle.ts";

/** The kernel takes IPv6 away from a link with a smaller one (RFC 8200 section 5). */
const SMALLEST_MTU_OF_IPV6 = 1280;

/** Returns whether the link has the address. */
export function setLifetime(handle: NetnsHandle, { address, broadcast }: Offered, seconds: number): boolean {
  const present = handle.address(AF_INET, ({ bytes }) => isSameBytes(bytes, address.bytes));
  if (present === undefined) return false;
  lend(handle.route, handle.link.index, { bytes: address.bytes, bits: present.bits }, seconds, broadcast);
  return true;
}

/** Puts the new lease in place of the old one. */
export function exchangeLease(
  handle: NetnsHandle,
  { before, after, seconds }: { before: Offered | undefined; after: Offered; seconds: number },
  options: LeaseOptions,
): void {
  const { route, link } = handle,
    isMoved = before === undefined || !isSameBytes(before.address.bytes, after.address.bytes);
  const had = before === undefined ? [] : routesOnLink(before, options, link.index);
  const gets = routesOnLink(after, options, link.index);
  removeRoutes(handle, had.filter((one) => isMoved || !includesRoute(gets, one)));
  // First the old one: where both are of one subnet, the kernel drops the later one with the earlier.
  if (isMoved && before !== undefined) delAddress(route, link.index, before.address);
  // The kernel has dropped the routes with an address that somebody has removed.
  const isNew = isMoved || !setLifetime(handle, after, seconds);
  if (isNew) lend(route, link.index, after.address, seconds, after.broadcast);
  const failures = addRoutes(handle, gets.filter((one) => isNew || !includesRoute(had, one)));
  if (isMoved) announce(handle, after.address.bytes);
  throwJoined(failures);
}

/** Takes the address and the routes of a lease that has ended from the link. */
export function removeLeaseFromLink(
  handle: NetnsHandle,
  offered: Offered,
  how: LeaseOptions["onExpiry"],
  options: LeaseOptions,
): void {
  const { route, link } = handle;
  if (how === "keep") return;
  removeRoutes(handle, routesOnLink(offered, options, link.index));
  delAddress(route, link.index, offered.address);
  if (how === "down") setLink(route, link, { up: false });
}

/** Lowers the link's MTU, and never raises it. */
export function lowerMtu(handle: NetnsHandle, { mtu }: Offered, { ignored, v6 }: LeaseOptions): void {
  const { route, link } = handle;
  if (mtu === undefined || mtu >= link.mtu || ignored.includes("mtu")) return;
  const hasV6 = v6 !== undefined ||
    handle.address(AF_INET6, ({ bytes }) => !isLinkLocal(bytes)) !== undefined;
  if (hasV6 && mtu < SMALLEST_MTU_OF_IPV6) return;
  setLink(route, link, { mtu });
}

/** The kernel counts whole seconds. An address that lives no longer than one would be gone before it is used. */
function lend(
  route: NetnsHandle["route"],
  index: number,
  address: Offered["address"],
  seconds: number,
  broadcast: Uint8Array | undefined,
): void {
  const valid = Math.max(1, Math.floor(seconds));
  lendAddress(route, index, address, { preferred: valid, valid }, broadcast);
}

function routesOnLink(offered: Offered, options: LeaseOptions, oif: number): KernelRoute[] {
  return kernelRoutesOfLease(routesOf(offered, options), oif);
}
