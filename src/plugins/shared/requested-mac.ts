/** The MAC address that a link is asked to have. */
import { parseCniArgs } from "../../cni/args.ts";
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import { randomMac } from "../../ffi/random.ts";
import { canonicalMac } from "../../net/mac.ts";
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";

interface MacConf extends PluginConfig {
  mac?: string;
  runtimeConfig?: { mac?: string };
}

/**
 * Of a macvlan or a tap: capability, then CNI_ARGS, then the configuration; else one is picked, so that it is known
 * before the link is made.
 */
export function requestedMac(at: Attachment<MacConf>): string {
  const { conf } = at;
  const fromArgs = macInArgs(at);
  const wanted = conf.runtimeConfig?.mac || fromArgs || conf.mac;
  if (!wanted) return at.choose(randomMac, () => undefined);
  const mac = canonicalMac(wanted);
  if (mac !== undefined) return mac;
  if (at.restating) return "";
  throw new CniError(INVALID_CONFIG, `invalid args ${wanted} for MAC addr: address ${wanted}: invalid MAC address`);
}

/** That of CNI_ARGS. What ADD refuses there is no reason for DEL not to look for what is left. */
export function macInArgs({ cniArgs, restating }: Attachment<PluginConfig>): string | undefined {
  try {
    return parseCniArgs(cniArgs, ["MAC"]).MAC;
  } catch (error) {
    if (restating) return undefined;
    throw error;
  }
}
