/** Chooses the routes for each address's own table, and the routes that leave the main table. Pure. */
import { imageOf, type RouteImage } from "../../../ffi/netlink/route/route-image.ts";
import { RT_SCOPE_LINK } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { contains, isLinkLocal, networkOf, type Prefix } from "../../../net/address.ts";

export interface OwnAddress {
  prefix: Prefix;
  gateway: Uint8Array | undefined;
}

/** The kernel's default priority of an IPv6 route; for IPv4 it is 0. */
const V6_DEFAULT_PRIORITY = 1024;

/**
 * The routes of the address's table: the routes of the main table that belong to it, and a default route by its gateway
 * unless they contain one. `fixed` gateways, from the configuration, override both.
 */
export function routesFor(
  address: OwnAddress,
  all: readonly OwnAddress[],
  routes: readonly RouteImage[],
  linkIndex: number,
  fixed: readonly Uint8Array[],
): Uint8Array[] {
  const v4 = isV4(address.prefix);
  const fixedGateway = fixed.find((gateway) => (gateway.length === 4) === v4);
  const gateway = fixedGateway ?? address.gateway;
  const priority = v4 ? 0 : V6_DEFAULT_PRIORITY;
  const taken: RouteImage[] = [];
  let hasDefault = false;
  for (const image of routes) {
    const { route } = image;
    if (isV4(route.dst) !== v4 || !belongs(image, address, all)) continue;
    const isDefault = route.dst.bits === 0 && (route.priority ?? 0) === priority;
    if (isDefault && fixedGateway !== undefined) continue;
    hasDefault ||= isDefault;
    taken.push(image);
  }
  const images = taken.map(({ bytes }) => bytes);
  if (gateway !== undefined && !hasDefault) {
    const dst = { bytes: new Uint8Array(address.prefix.bytes.length), bits: 0 };
    images.push(imageOf({ dst, oif: linkIndex, gateway, priority: priority || undefined }));
  }
  return images;
}

/** A route belongs to the address whose subnet contains its source or gateway, or else to all addresses. */
function belongs(image: RouteImage, address: OwnAddress, all: readonly OwnAddress[]): boolean {
  return isAnchored(image, address) || !all.some((other) => isAnchored(image, other));
}

function isAnchored({ route: { preferredSource, gateway } }: RouteImage, { prefix }: OwnAddress): boolean {
  if (preferredSource !== undefined && contains(prefix, preferredSource)) return true;
  return gateway !== undefined && contains(prefix, gateway);
}

interface MainTable {
  withdrawn: Uint8Array[];
  /** Routes that replace some of them. */
  hints: Uint8Array[];
}

/**
 * Removes all routes of the addresses' families from the main table, except those to link-local addresses, which do not
 * compete with other links. With `addSourceHints` the on-link routes stay, and those to the addresses' subnets get the
 * address as preferred source.
 */
export function mainTable(
  all: readonly OwnAddress[],
  routes: readonly RouteImage[],
  linkIndex: number,
  addSourceHints: boolean,
): MainTable {
  const hints = new Map<string, Uint8Array>();
  for (const { prefix } of addSourceHints ? all : []) {
    const dst = { bytes: networkOf(prefix), bits: prefix.bits };
    if (prefix.bits === prefix.bytes.length * 8) continue;
    const route = { dst, oif: linkIndex, preferredSource: prefix.bytes };
    hints.set(
      keyOf(dst),
      imageOf(isV4(dst) ? { ...route, scope: RT_SCOPE_LINK } : { ...route, priority: V6_DEFAULT_PRIORITY }),
    );
  }
  const withdrawn: RouteImage[] = [];
  for (const image of routes) {
    const { dst } = image.route;
    if (!all.some(({ prefix }) => isV4(prefix) === isV4(dst))) continue;
    if (isLinkLocal(dst.bytes)) continue;
    if (addSourceHints && isOnLink(image) && !hints.has(keyOf(dst))) continue;
    withdrawn.push(image);
  }
  return { withdrawn: withdrawn.map(({ bytes }) => bytes), hints: [...hints.values()] };
}

function isOnLink({ route: { dst, scope = 0, gateway } }: RouteImage): boolean {
  return isV4(dst) ? scope >= RT_SCOPE_LINK : gateway === undefined;
}

function isV4({ bytes }: Prefix): boolean {
  return bytes.length === 4;
}

function keyOf({ bytes, bits }: Prefix): string {
  return `${bytes}/${bits}`;
}
