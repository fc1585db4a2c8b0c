/** What link plugins need of IPAM. */
import type { Dns, Result } from "../../cni/result.ts";
import type { PluginConfig } from "../../contract/plugin.ts";

/** The settings of the configuration if it has any, otherwise those of the lease. */
export function dnsOr({ dns }: PluginConfig, lease: Result | undefined): Dns | undefined {
  for (const value of Object.values(dns ?? {})) if (value !== undefined && value !== "") return dns;
  return lease?.dns;
}
