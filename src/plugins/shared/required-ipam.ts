/** For link plugins that require addresses. */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import type { PluginConfig } from "../../contract/plugin.ts";

export function requireIpam({ ipam }: PluginConfig, refusal = "no plugin name provided"): void {
  if (!ipam?.type) throw new CniError(INVALID_CONFIG, refusal, `"ipam.type" is missing`);
}
