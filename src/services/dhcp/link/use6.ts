/**
 * An IPv6 lease on the link: the address with the lease's lifetimes, and the routes of the configuration. Others come from
 * router advertisements.
 */
import { throwJoined } from "../../../contract/failures.ts";
import { AF_INET6 } from "../../../ffi/socket/socket.ts";
import { delAddress, lendAddress } from "../../../ffi/netlink/route/address.ts";
import type { KernelRoute } from "../../../ffi/netlink/route/route.ts";
import { isSameBytes } from "../../../net/address.ts";
import { configuredRoutes } from "../configured-routes.ts";
import type { LeaseOptions } from "../lease-options.ts";
import type { Binding } from "../v6/message/offer.ts";
import { addRoutes, kernelRoutesOfLease, removeRoutes } from "./kernel-routes.ts";
import type { NetnsHandle } from "./netns-handle.ts";

/** Routers say which other addresses are on the link (RFC 8415 section 18.2.10.1). */
const ALONE = 128;

/** Returns whether the link has the address. `age`: seconds since the lease began. */
export function setLifetimes(handle: NetnsHandle, binding: Binding, age: number): boolean {
  const { route, link } = handle;
  const present = handle.address(AF_INET6, ({ bytes }) => isSameBytes(bytes, binding.address));
  if (present === undefined) return false;
  lendAddress(route, link.index, { bytes: binding.address, bits: present.bits }, lifetimeOf(binding, age));
  return true;
}

/** Puts the new lease in place of the old one. `age`: as above. */
export function exchangeBinding(
  handle: NetnsHandle,
  { before, after, age }: { before: Binding | undefined; after: Binding; age: number },
  options: LeaseOptions,
): void {
  const { route, link } = handle,
    isMoved = before === undefined || !isSameBytes(before.address, after.address);
  let failures: unknown[] = [];
  if (isMoved || !setLifetimes(handle, after, age)) {
    lendAddress(route, link.index, { bytes: after.address, bits: ALONE }, lifetimeOf(after, age));
    failures = addRoutes(handle, routesOnLink(options, link.index));
  }
  if (isMoved && before !== undefined) delAddress(route, link.index, { bytes: before.address, bits: ALONE });
  throwJoined(failures);
}

export function removeBinding(handle: NetnsHandle, { address }: Binding, options: LeaseOptions): void {
  const { route, link } = handle;
  if (options.onExpiry === "keep") return;
  removeRoutes(handle, routesOnLink(options, link.index));
  delAddress(route, link.index, { bytes: address, bits: ALONE });
}

function routesOnLink(options: LeaseOptions, oif: number): KernelRoute[] {
  return kernelRoutesOfLease(configuredRoutes(options, "ipv6"), oif);
}

function lifetimeOf({ preferred, valid }: Binding, age: number) {
  const left = (seconds: number) => Math.max(0, Math.floor(seconds - age));
  return { preferred: left(preferred), valid: Math.max(1, left(valid)) };
}
