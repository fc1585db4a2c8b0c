/**
 * The addresses and routes of the host's end of a point-to-point link (ptp): each gateway's address as a single address,
 * and a route to each address of the container. DEL does nothing: the kernel drops them with the link.
 */
import { AF_UNSPEC } from "../../ffi/socket/socket.ts";
import { CniError, INTERNAL } from "../../cni/error.ts";
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { EEXIST } from "../../ffi/errno.ts";
import { addAddress, listAddresses } from "../../ffi/netlink/route/address.ts";
import { getLink, linkIndex } from "../../ffi/netlink/route/link.ts";
import { addRoute, isSameRoute, type KernelRoute, listRoutes } from "../../ffi/netlink/route/route.ts";
import { isNetlinkError } from "../../ffi/netlink/socket.ts";
import { RT_SCOPE_HOST } from "../../ffi/netlink/uapi/rtnetlink.ts";
import { compareAddresses, formatAddress, isV6, parseAddress, parsePrefix, type Prefix } from "../../net/address.ts";
import { accepted, redirectsNow, refuse } from "../link/shared/refusals.ts";
import { whyNoV6 } from "./shared/disabled-v6.ts";
import { differenceOfWay } from "./shared/way-to-container.ts";

interface GatewaySideSpec {
  ifName: string;
  /** The container's addresses in CIDR notation. */
  addresses: { address: string; gateway: string }[];
}

export const gatewaySideKind: ResourceKind<GatewaySideSpec> = {
  kind: "gateway-side",
  judge({ ifName, addresses }) {
    const why = addresses.some(({ gateway }) => isV6(gateway)) ? whyNoV6(ifName) : undefined;
    if (why !== undefined) throw new CniError(INTERNAL, why);
  },
  apply(spec, host) {
    const { route } = host;
    const index = linkIndex(route, spec.ifName);
    if (index === undefined) throw new CniError(INTERNAL, `link ${spec.ifName} is missing`);
    for (const { address, gateway } of spec.addresses) {
      try {
        addAddress(route, index, singleAddress(parseAddress(gateway)!), { skipDad: true });
        addRoute(route, routeTo(address, index));
      } catch (error) {
        if (isNetlinkError(error, EEXIST)) continue;
        const why = (isV6(gateway) ? whyNoV6(spec.ifName) : undefined) ?? (error as Error).message;
        const text = `failed to give ${spec.ifName} the gateway ${gateway} of ${address}: ${why}`;
        throw new CniError(INTERNAL, text, "", { cause: error });
      }
    }
  },
  remove: () => {},
  verify(spec, host, isRestated) {
    const index = linkIndex(host.route, spec.ifName);
    if (index === undefined) return [`link ${spec.ifName} is missing`];
    const addresses = listAddresses(host.route, index), routes = listRoutes(host.route, AF_UNSPEC);
    // The reference plugin leaves redirects open (docs/quirks/bridge.md, "host-refuses-redirects").
    const differences = isRestated ? [] : accepted(redirectsNow(spec.ifName));
    for (const { address, gateway } of spec.addresses) {
      const bytes = parseAddress(gateway)!;
      if (!addresses.some((present) => compareAddresses(present.bytes, bytes) === 0)) {
        differences.push(`gateway address ${gateway} is missing on ${spec.ifName}`);
      }
      const wanted = routeTo(address, index);
      if (!routes.some((present) => isSameRoute(wanted, present))) {
        differences.push(`route to ${formatAddress(wanted.dst.bytes)} by ${spec.ifName} is missing`);
      }
    }
    return differences;
  },
  inTheWay(spec, host) {
    const link = getLink(host.route, spec.ifName);
    return link === undefined ? [] : spec.addresses.flatMap(({ address }) => {
      const route = routeTo(address, link.index);
      return differenceOfWay({ to: route.dst.bytes, link, route }, host);
    });
  },
  repair(spec, host) {
    refuse(redirectsNow(spec.ifName));
    gatewaySideKind.apply(spec, host);
  },
  describe: ({ ifName, addresses }) =>
    `${addresses.map(({ address, gateway }) => `gateway ${gateway} of ${address}`).join(", ")} on ${ifName}`,
};

export const gatewaySide = resource(gatewaySideKind);

function singleAddress(bytes: Uint8Array): Prefix {
  return { bytes, bits: bytes.length * 8 };
}

function routeTo(address: string, oif: number): KernelRoute {
  return { dst: singleAddress(parsePrefix(address)!.bytes), oif, scope: RT_SCOPE_HOST };
}
