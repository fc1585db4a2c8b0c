/** The requested MAC address of a link. */
import { parseCniArgs } from "../../cni/args.ts";
import { CniError, INVALID_CONFIG, undefinedOnError } from "../../cni/error.ts";
import { randomMac } from "../../ffi/random.ts";
import { canonicalMac } from "../../net/mac.ts";
import type { Attachment, JudgedCall, PluginConfig } from "../../contract/plugin.ts";

interface MacConf extends PluginConfig {
  mac?: string;
  runtimeConfig?: { mac?: string };
}

/**
 * For a macvlan or a tap: from the capability, then CNI_ARGS, then the configuration. Otherwise a random one, chosen
 * here so that it is known before the link is made.
 */
export function requestedMac(at: Attachment<MacConf>): string {
  return macOr(configuredMac(at.conf, readableMacInArgs(at)), at);
}

/** The one that is wanted, or else a chosen one. */
export function macOr(wanted: string | undefined, at: Attachment<PluginConfig>): string {
  return wanted ? canonicalMac(wanted) ?? "" : chosenMac(at);
}

/** A random one; afterwards the one that the result has for the container's interface. */
export function chosenMac(at: Attachment<PluginConfig>): string {
  const { ifName } = at;
  return at.choose(
    randomMac,
    ({ interfaces = [] }) => interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox)?.mac ?? "",
  );
}

/** Throws when the requested MAC is malformed. */
export function judgeMac(conf: MacConf, call: JudgedCall): void {
  const wanted = configuredMac(conf, macInArgs(call));
  if (!wanted || canonicalMac(wanted) !== undefined) return;
  throw new CniError(INVALID_CONFIG, `invalid args ${wanted} for MAC addr: address ${wanted}: invalid MAC address`);
}

function configuredMac({ runtimeConfig, mac }: MacConf, fromArgs: string | undefined): string | undefined {
  return runtimeConfig?.mac || fromArgs || mac;
}

export function macInArgs({ cniArgs }: Pick<JudgedCall, "cniArgs">): string | undefined {
  return parseCniArgs(cniArgs, ["MAC"]).MAC;
}

/** Ignores malformed CNI_ARGS, for DEL. Every other verb has judged them before. */
export function readableMacInArgs(call: Pick<JudgedCall, "cniArgs">): string | undefined {
  return undefinedOnError(() => macInArgs(call));
}
