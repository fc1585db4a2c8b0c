/** Addresses and routes of a container: those that podman has chosen, or those of a DHCP server. */
import type { IpConfig, Result, Route } from "../../../cni/result.ts";
import type { Attachment } from "../../../contract/plugin.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { NetavarkConf, PodmanNetwork } from "../../../interop/podman-documents/netavark.schema.ts";
import { refuseBadRoutes, refuseOverlaps } from "../../../interop/podman-documents/network.ts";
import { RTPROT_STATIC } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { contains, parseAddress, parsePrefix } from "../../../net/address.ts";
import { addressing } from "../../../resources/address/addressing/addressing.ts";
import { type StaticRoute, staticRoutes } from "../../../resources/netavark/static-routes.ts";

/** The metric of a route that says none. */
const ROUTE_METRIC = 100;

export interface GivenAddress {
  /** The address with the subnet's prefix length. */
  address: string;
  gateway?: string | undefined;
  /** As configured. */
  subnet: string;
}

export function hasDhcp({ ipam_options }: PodmanNetwork): boolean {
  return ipam_options?.["driver"] === "dhcp";
}

/** Empty for a network without IPAM. At teardown podman may have lost the addresses; the ledger has them. */
export function givenAddresses({ network, network_options }: NetavarkConf, isLeaving: boolean): GivenAddress[] {
  const driver = network.ipam_options?.["driver"] ?? "host-local";
  if (driver === "none" || driver === "dhcp") return [];
  if (driver !== "host-local") throw new Error(`unsupported ipam driver ${driver}`);
  const subnets = network.subnets ?? [], wanted = network_options.static_ips ?? [];
  if (isLeaving && wanted.length === 0) return [];
  if (wanted.length === 0) throw new Error("no static ips provided");
  refuseOverlaps(subnets);
  refuseBadRoutes(network.routes ?? []);
  // In a layer-2 network podman only notes the addresses.
  if (subnets.length === 0) return [];
  const given = subnets.flatMap(({ subnet, gateway }) =>
    wanted.filter((address) => contains(parsePrefix(subnet)!, parseAddress(address)!))
      .map((address) => ({ address: `${address}/${parsePrefix(subnet)!.bits}`, gateway, subnet }))
  );
  if (given.length === wanted.length) return given;
  throw new Error(`not all static IPs matched a subnet: expected ${wanted.length}, got ${given.length}`);
}

/** The resources that make the container's link usable. */
export function addressed(
  { conf: { network: podmans }, network, containerId, ifName }: Attachment<NetavarkConf>,
  given: readonly GivenAddress[],
  options: { metric: number; noDefaultRoute: boolean },
  sysctls: Record<string, string>,
  lease: Result | undefined,
): { ips: IpConfig[]; resources: Resource<unknown>[] } {
  const ips = (lease === undefined ? given : lease.ips ?? []).map(({ address, gateway }) => ({ address, gateway }));
  const leased = lease?.routes ?? [];
  const spec = { ifName, addresses: ips, routes: leased, protocol: RTPROT_STATIC, sysctls, detectDuplicates: false };
  if (hasDhcp(podmans) || podmans.ipam_options?.["driver"] === "none") return { ips, resources: [addressing(spec)] };
  const routes = routesOf(podmans);
  // These routes name the link, because the gateway of another network may have the same address.
  const own = [...defaultRoutes(podmans, options), ...routes.filter((route) => isByNeighbour(route, ips))];
  const others = routes.filter((route) => !own.includes(route)), owner = { network, containerId, ifName };
  const laterRoutes = own.length > 0 ? own.map(inForm) : undefined;
  const resources: Resource<unknown>[] = [addressing({ ...spec, laterRoutes })];
  if (own.length > 0) resources.push(staticRoutes({ ifName, owner, routes: own }));
  if (others.length > 0) resources.push(staticRoutes({ owner, routes: others }));
  return { ips, resources };
}

function inForm({ destination, gateway, metric }: StaticRoute): Route {
  return { dst: destination, gw: gateway, priority: metric };
}

/** A default route for each family that has a gateway. */
function defaultRoutes(
  network: PodmanNetwork,
  { metric, noDefaultRoute }: { metric: number; noDefaultRoute: boolean },
): StaticRoute[] {
  const gateways = noDefaultRoute || network.internal ? [] : gatewaysOf(network);
  return ([["0.0.0.0/0", 4], ["::/0", 16]] as const).flatMap(([destination, length]) => {
    const gateway = gateways.find((each) => parseAddress(each)!.length === length);
    return gateway === undefined ? [] : [{ destination, gateway, metric, type: "unicast" as const }];
  });
}

function routesOf({ routes = [] }: PodmanNetwork): StaticRoute[] {
  return routes.map(({ destination, gateway, metric = ROUTE_METRIC, route_type }) => ({
    destination,
    gateway,
    metric,
    type: (route_type || "unicast") as StaticRoute["type"],
  }));
}

/** Whether the gateway is in a subnet of the link. */
function isByNeighbour({ gateway }: StaticRoute, ips: readonly IpConfig[]): boolean {
  const bytes = gateway === undefined ? undefined : parseAddress(gateway);
  return bytes !== undefined && ips.some(({ address }) => contains(parsePrefix(address)!, bytes));
}

export function gatewaysOf({ subnets = [] }: PodmanNetwork): string[] {
  return subnets.flatMap(({ gateway }) => gateway === undefined ? [] : [gateway]);
}

/** Without aardvark-dns: the container's own servers, else the DHCP server's. */
export function resolversOf({ network, dns_servers }: NetavarkConf, lease: Result | undefined): Result["dns"] {
  const leased = hasDhcp(network) ? lease?.dns ?? {} : { nameservers: [] };
  return { search: leased.domain ? [leased.domain] : [], nameservers: dns_servers ?? leased.nameservers };
}
