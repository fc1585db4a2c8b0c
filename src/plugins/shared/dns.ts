/** The DNS settings of a result, from the configuration or from IPAM. */
import type { PluginConfig } from "../../contract/plugin.ts";
import type { Dns, Result } from "../../cni/result.ts";

/** The settings of the configuration if it has any, otherwise those of the lease. */
export function dnsOr({ dns }: PluginConfig, lease: Result | undefined): Dns | undefined {
  for (const value of Object.values(dns ?? {})) if (value !== undefined && value !== "") return dns;
  return lease?.dns;
}
