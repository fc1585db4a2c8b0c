/** What the kernel refuses of addresses and routes, found without a link: for `patchbay plan`. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { describeRoute, type KernelRoute } from "../../../ffi/netlink/route/route.ts";
import { RT_SCOPE_LINK, RT_SCOPE_UNIVERSE } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import {
  contains,
  formatAddress,
  formatPrefix,
  hasHostBits,
  isLinkLocal,
  type Prefix,
} from "../../../net/address.ts";

/** The kernel has an IPv4 address once for each prefix length, and an IPv6 address once. It also looks what IPv6's are. */
export function refuseAddresses(ifName: string, addresses: readonly Prefix[]): void {
  const seen = new Set<string>();
  for (const prefix of addresses) {
    const text = formatPrefix(prefix), key = prefix.bytes.length === 16 ? formatAddress(prefix.bytes) : text;
    const isMulticast = prefix.bytes.length === 16 && prefix.bytes[0] === 0xff;
    const reason = key === "::1" || isMulticast
      ? "cannot assign requested address"
      : seen.has(key)
      ? "file exists"
      : undefined;
    if (reason !== undefined) throw new CniError(INTERNAL, `failed to add IP addr ${text} to "${ifName}": ${reason}`);
    seen.add(key);
  }
}

export function refuseRoutes(ifName: string, routes: readonly KernelRoute[], addresses: readonly Prefix[]): void {
  for (const { route, reason } of refusedRoutes(routes, addresses)) {
    throw new CniError(INTERNAL, `failed to add route '${describeRoute(route)} dev ${ifName}': ${reason}`);
  }
}

interface RefusedRoute {
  route: KernelRoute;
  /** In the kernel's words. */
  reason: string;
}

/** `routes` are in the order in which ADD adds them: a gateway has to be reached by an address, or by an earlier route. */
export function refusedRoutes(routes: readonly KernelRoute[], addresses: readonly Prefix[]): RefusedRoute[] {
  const reached: Prefix[] = [...addresses], seen = new Set<string>(), refused: RefusedRoute[] = [];
  for (const route of routes) {
    const reason = whyRefused(route, reached, seen);
    if (reason !== undefined) refused.push({ route, reason });
    if (reachesNeighbours(route)) reached.push(route.dst);
  }
  return refused;
}

/** Whether its destinations may be gateways of later routes. IPv4 wants it said by the scope. */
function reachesNeighbours({ dst, gateway, scope = RT_SCOPE_UNIVERSE }: KernelRoute): boolean {
  return gateway === undefined && (dst.bytes.length === 16 || scope >= RT_SCOPE_LINK);
}

function whyRefused(route: KernelRoute, reached: readonly Prefix[], seen: Set<string>): string | undefined {
  const { dst, gateway } = route;
  const isV4 = dst.bytes.length === 4;
  if (isV4 && hasHostBits(dst)) return "invalid argument";
  if (gateway !== undefined && gateway.length !== dst.bytes.length) {
    return isV4 ? "network is unreachable" : "numerical result out of range";
  }
  if (gateway !== undefined && !isLinkLocal(gateway) && !reached.some((by) => contains(by, gateway))) {
    return isV4 ? "network is unreachable" : "no route to host";
  }
  // Another gateway, metric or preferred source makes another route.
  const key = JSON.stringify(route);
  if (isV4 && seen.has(key)) return "file exists";
  seen.add(key);
  return undefined;
}
