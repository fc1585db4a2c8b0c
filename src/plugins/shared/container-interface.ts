/**
 * The end of the story for plugins whose container's interface gets the lease's addresses and nothing else. In the result it is
 * number 0, or follows the link's end on the host.
 */
import { addressing } from "../../resources/address/addressing/addressing.ts";
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";
import type { Interface, IpConfig, Result } from "../../cni/result.ts";
import { dnsOr } from "./ipam.ts";

/** Without a lease the link is only brought up, for a layer-2 network. */
export function configureContainerInterface(
  at: Attachment<PluginConfig>,
  mac: string,
  lease: Result | undefined,
  sysctls: Record<string, string> = {},
  hostEnd?: Interface,
): Result {
  const { conf, ifName } = at;
  const addresses: { address: string; gateway?: string }[] = [];
  const ips: IpConfig[] = [];
  for (const { address, gateway } of lease?.ips ?? []) {
    addresses.push({ address, gateway });
    ips.push({ address, interface: hostEnd === undefined ? 0 : 1, gateway });
  }
  const routes = lease?.routes ?? [];
  at.apply(addressing({ ifName, addresses, routes, sysctls, detectDuplicates: false }));
  const result: Result = {
    cniVersion: conf.cniVersion,
    interfaces: [...hostEnd === undefined ? [] : [hostEnd], { name: ifName, mac, sandbox: at.netnsPath }],
    dns: dnsOr(conf, lease),
  };
  return lease === undefined ? result : { ...result, ips, routes: lease.routes };
}
