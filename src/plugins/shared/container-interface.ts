/**
 * How the story of plugins ends whose only interface is the container's: the lease's addresses on it, and a result in
 * which that interface is number 0. `dns` is the configuration's, whatever IPAM says.
 */
import { addressing } from "../../resources/address/addressing/addressing.ts";
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";
import type { IpConfig, Result } from "../../cni/result.ts";

/** Without a lease the link is only brought up: a layer-2 network. */
export function soleInterface(
  at: Attachment<PluginConfig>,
  mac: string,
  lease: Result | undefined,
  sysctls: Record<string, string> = {},
): Result {
  const { conf, ifName } = at;
  const addresses: { address: string; gateway?: string }[] = [];
  const ips: IpConfig[] = [];
  for (const { address, gateway } of lease?.ips ?? []) {
    addresses.push({ address, gateway });
    ips.push({ address, interface: 0, gateway });
  }
  const routes = lease?.routes ?? [];
  at.apply(addressing({ ifName, addresses, routes, sysctls, detectDuplicates: false }));
  const result: Result = {
    cniVersion: conf.cniVersion,
    interfaces: [{ name: ifName, mac, sandbox: at.netnsPath }],
    dns: conf.dns,
  };
  return lease === undefined ? result : { ...result, ips, routes: lease.routes };
}
