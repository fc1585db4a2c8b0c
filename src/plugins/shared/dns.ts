/** The DNS settings of a result, where they may be the configuration's or IPAM's. */
import type { PluginConfig } from "../../contract/plugin.ts";
import type { Dns, Result } from "../../cni/result.ts";

/** The configuration's if it says anything, else those of the lease. */
export function dnsOr({ dns }: PluginConfig, lease: Result | undefined): Dns | undefined {
  for (const value of Object.values(dns ?? {})) if (value !== undefined && value !== "") return dns;
  return lease?.dns;
}
