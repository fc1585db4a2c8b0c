/** What makes a container's link usable: the addresses that podman has chosen, or those of a DHCP server. */
import type { IpConfig, Result } from "../../../cni/result.ts";
import type { Attachment, PluginConfig } from "../../../contract/plugin.ts";
import type { Resource } from "../../../contract/resource.ts";
import { addressing } from "../../../resources/address/addressing/addressing.ts";
import { type StaticRoute, staticRoutes } from "../../../resources/netavark/static-routes.ts";

export interface AddressedConf {
  addresses: { address: string; gateway?: string }[];
  /** With the link named, because the gateway of another network may have the same address. */
  defaultRoutes: StaticRoute[];
  routes: StaticRoute[];
}

export function addressed(
  { conf, ifName }: Attachment<PluginConfig & AddressedConf>,
  sysctls: Record<string, string>,
  lease: Result | undefined,
): { ips: IpConfig[]; dns: Result["dns"]; resources: Resource<unknown>[] } {
  const ips = lease === undefined
    ? conf.addresses
    : (lease.ips ?? []).map(({ address, gateway }) => ({ address, gateway }));
  const resources: Resource<unknown>[] = [
    addressing({ ifName, addresses: ips, routes: lease?.routes ?? [], sysctls, detectDuplicates: false }),
  ];
  if (conf.defaultRoutes.length > 0) resources.push(staticRoutes({ ifName, routes: conf.defaultRoutes }));
  if (conf.routes.length > 0) resources.push(staticRoutes({ routes: conf.routes }));
  return { ips, dns: lease?.dns, resources };
}
