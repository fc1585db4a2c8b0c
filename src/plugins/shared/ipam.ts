/** What link plugins need of IPAM. */
import type { PluginConfig } from "../../contract/plugin.ts";
import type { Dns, Result } from "../../cni/result.ts";
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";

/** The settings of the configuration if it has any, otherwise those of the lease. */
export function dnsOr({ dns }: PluginConfig, lease: Result | undefined): Dns | undefined {
  for (const value of Object.values(dns ?? {})) if (value !== undefined && value !== "") return dns;
  return lease?.dns;
}

export function requireIpam({ ipam }: PluginConfig, refusal = "no plugin name provided"): void {
  if (!ipam?.type) throw new CniError(INVALID_CONFIG, refusal, `"ipam.type" is missing`);
}
