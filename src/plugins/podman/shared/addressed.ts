/** What makes a container's link usable: the addresses that podman has chosen, or those of a DHCP server. */
import type { IpConfig, Result } from "../../../cni/result.ts";
import type { Attachment, PluginConfig } from "../../../contract/plugin.ts";
import type { Resource } from "../../../contract/resource.ts";
import { RTPROT_STATIC } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { contains, parseAddress, parsePrefix } from "../../../net/address.ts";
import { addressing } from "../../../resources/address/addressing/addressing.ts";
import { type StaticRoute, staticRoutes } from "../../../resources/netavark/static-routes.ts";

export interface AddressedConf {
  addresses: { address: string; gateway?: string }[];
  defaultRoutes: StaticRoute[];
  routes: StaticRoute[];
}

export function addressed(
  { conf, network, containerId, ifName }: Attachment<PluginConfig & AddressedConf>,
  sysctls: Record<string, string>,
  lease: Result | undefined,
): { ips: IpConfig[]; dns: Result["dns"]; resources: Resource<unknown>[] } {
  const ips = lease === undefined
    ? conf.addresses
    : (lease.ips ?? []).map(({ address, gateway }) => ({ address, gateway }));
  const resources: Resource<unknown>[] = [
    addressing({
      ifName,
      addresses: ips,
      routes: lease?.routes ?? [],
      protocol: RTPROT_STATIC,
      sysctls,
      detectDuplicates: false,
    }),
  ];
  // With the link named, because the gateway of another network may have the same address.
  const own = [...conf.defaultRoutes, ...conf.routes.filter((route) => isByNeighbour(route, ips))];
  const others = conf.routes.filter((route) => !own.includes(route));
  const owner = { network, containerId, ifName };
  if (own.length > 0) resources.push(staticRoutes({ ifName, owner, routes: own }));
  if (others.length > 0) resources.push(staticRoutes({ owner, routes: others }));
  return { ips, dns: lease?.dns, resources };
}

/** Whether the gateway is in a subnet of the link. */
function isByNeighbour({ gateway }: StaticRoute, ips: readonly IpConfig[]): boolean {
  const bytes = gateway === undefined ? undefined : parseAddress(gateway);
  return bytes !== undefined && ips.some(({ address }) => contains(parsePrefix(address)!, bytes));
}
