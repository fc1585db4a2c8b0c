/** The MAC address that a macvlan or a tap is to have. */
import { parseCniArgs } from "../../cni/args.ts";
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import { randomMac } from "../../ffi/random.ts";
import { parseMac } from "../../net/mac.ts";
import type { Attachment, PluginConfig } from "../../engine/plugin.ts";

interface MacConf extends PluginConfig {
  mac?: string;
  runtimeConfig?: { mac?: string };
}

/** Capability, then CNI_ARGS, then the configuration; else one is picked, so that it is known before the link is made. */
export function requestedMac(at: Attachment<MacConf>): string {
  const { conf } = at;
  const fromArgs = parseCniArgs(at.cniArgs, ["MAC"]).MAC;
  const wanted = conf.runtimeConfig?.mac || fromArgs || conf.mac;
  if (!wanted) return at.choose(randomMac, () => undefined);
  if (parseMac(wanted) !== undefined) return wanted.toLowerCase();
  if (at.restating) return "";
  throw new CniError(INVALID_CONFIG, `invalid args ${wanted} for MAC addr: address ${wanted}: invalid MAC address`);
}
