/** An IPv6 lease on the link: the address with the lease's lifetimes. Its routes come from router advertisements. */
import { AF_INET6 } from "../../ffi/socket/socket.ts";
import { delAddress, lendAddress } from "../../ffi/netlink/route/address.ts";
import { isSameBytes } from "../../net/address.ts";
import type { Binding } from "../v6/message/offer.ts";
import type { LeaseOptions } from "../lease-options.ts";
import type { NetnsHandle } from "./netns-handle.ts";

/** Which other addresses are on the link, routers say (RFC 8415 section 18.2.10.1). */
const ALONE = 128;

/** Returns whether the link has the address. `age`: seconds since the lease began. */
export function setLifetimes(handle: NetnsHandle, binding: Binding, age: number): boolean {
  const { route, link } = handle;
  const present = handle.address(AF_INET6, ({ bytes }) => isSameBytes(bytes, binding.address));
  if (present === undefined) return false;
  lendAddress(route, link.index, { bytes: binding.address, bits: present.bits }, lifetimeOf(binding, age));
  return true;
}

export function exchangeBinding(handle: NetnsHandle, before: Binding | undefined, after: Binding, age: number): void {
  const { route, link } = handle,
    isMoved = before === undefined || !isSameBytes(before.address, after.address);
  if (isMoved || !setLifetimes(handle, after, age)) {
    lendAddress(route, link.index, { bytes: after.address, bits: ALONE }, lifetimeOf(after, age));
  }
  if (isMoved && before !== undefined) delAddress(route, link.index, { bytes: before.address, bits: ALONE });
}

export function removeBinding({ route, link }: NetnsHandle, { address }: Binding, { onExpiry }: LeaseOptions): void {
  if (onExpiry !== "keep") delAddress(route, link.index, { bytes: address, bits: ALONE });
}

function lifetimeOf({ preferred, valid }: Binding, age: number) {
  const left = (seconds: number) => Math.max(0, Math.floor(seconds - age));
  return { preferred: left(preferred), valid: Math.max(1, left(valid)) };
}
