/** Addresses and routes of a container, which podman has chosen. */
import type { Result } from "../../cni/result.ts";
import type { PodmanNetwork as Network } from "../../documents/netavark.schema.ts";
import { refuseBadRoutes, refuseOverlaps } from "../../documents/network.ts";
import { contains, parseAddress, parsePrefix } from "../../net/address.ts";
import type { StaticRoute } from "../../resources/netavark/static-routes.ts";
import type { NetInterface } from "../wire/answer.ts";
import type { Wanted } from "./driver.ts";

const DHCP = "dhcp";
/** Of a route that names none; for a DHCP server's default route with every driver. */
const ROUTE_METRIC = 100;

export function hasDhcp({ ipam_options }: Network): boolean {
  return ipam_options?.["driver"] === DHCP;
}

/** For the plugin dhcp: who asks, and what of the answer counts. */
export function dhcpOf(
  { network, call }: Wanted,
  { metric = ROUTE_METRIC, noDefaultRoute }: { metric?: number | undefined; noDefaultRoute: boolean },
): { type: string } | undefined {
  if (!hasDhcp(network)) return undefined;
  const ignored = [...noDefaultRoute || network.internal ? ["routers"] : [], ...call.dns_servers ? ["dns"] : []];
  return {
    type: DHCP,
    priority: metric,
    ...call.container_hostname !== undefined && { hostname: call.container_hostname },
    ...ignored.length > 0 && { ignore: ignored },
  } as { type: string };
}

type Subnet = NonNullable<Network["subnets"]>[number];

export interface GivenAddress {
  /** With the subnet's prefix length. */
  address: string;
  gateway?: string | undefined;
  /** As configured. */
  subnet: string;
}

/** None for a network without IPAM. */
export function addressesOf({ network, attachment, isLeaving }: Wanted): GivenAddress[] {
  const driver = network.ipam_options?.["driver"] ?? "host-local";
  if (driver === "none" || driver === DHCP) return [];
  if (driver !== "host-local") throw new Error(`unsupported ipam driver ${driver}`);
  const subnets = network.subnets ?? [], wanted = attachment.static_ips ?? [];
  // podman may have lost them meanwhile: the ledger knows them.
  if (isLeaving && wanted.length === 0) return [];
  if (wanted.length === 0) throw new Error("no static ips provided");
  refuseOverlaps(subnets);
  refuseBadRoutes(network.routes ?? []);
  // A layer-2 network: the addresses are podman's own matter.
  if (subnets.length === 0) return [];
  const given = subnets.flatMap((subnet) =>
    wanted.filter((address) => contains(parsePrefix(subnet.subnet)!, parseAddress(address)!))
      .map((address) => inSubnet(address, subnet))
  );
  if (given.length === wanted.length) return given;
  throw new Error(`not all static IPs matched a subnet: expected ${wanted.length}, got ${given.length}`);
}

function inSubnet(address: string, { subnet, gateway }: Subnet): GivenAddress {
  return { address: `${address}/${parsePrefix(subnet)!.bits}`, gateway, subnet };
}

interface Routes {
  /** One of each family that has a gateway. */
  defaultRoutes: StaticRoute[];
  routes: StaticRoute[];
}

export function routesOf(
  { network }: Wanted,
  { metric, noDefaultRoute }: { metric: number; noDefaultRoute: boolean },
): Routes {
  const defaultRoutes: StaticRoute[] = [], routes: StaticRoute[] = [];
  if (network.ipam_options?.["driver"] === "none" || hasDhcp(network)) return { defaultRoutes, routes };
  const gateways = noDefaultRoute || network.internal ? [] : gatewaysOf(network);
  for (const [destination, length] of [["0.0.0.0/0", 4], ["::/0", 16]] as const) {
    const gateway = gateways.find((each) => parseAddress(each)!.length === length);
    if (gateway !== undefined) defaultRoutes.push({ destination, gateway, metric, type: "unicast" });
  }
  for (const { destination, gateway, metric: own = ROUTE_METRIC, route_type: type } of network.routes ?? []) {
    routes.push({ destination, gateway, metric: own, type: (type || "unicast") as StaticRoute["type"] });
  }
  return { defaultRoutes, routes };
}

export function gatewaysOf({ subnets }: Network): string[] {
  return (subnets ?? []).flatMap(({ gateway }) => gateway === undefined ? [] : [gateway]);
}

export function interfaceOf(mac: string, { ips }: Result): NetInterface {
  const subnets = (ips ?? []).map(({ address, gateway }) => ({ gateway: gateway ?? null, ipnet: address }));
  return { mac_address: mac, subnets };
}

/** Of a network without aardvark-dns: the container's own, else the DHCP server's. */
export function resolversOf({ network, call }: Wanted, { dns }: Result) {
  const isLeased = hasDhcp(network);
  return {
    dns_search_domains: isLeased && dns?.domain ? [dns.domain] : [],
    dns_server_ips: call.dns_servers ?? (isLeased ? dns?.nameservers ?? null : []),
  };
}
