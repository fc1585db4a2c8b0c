/** The parts of an attachment that are the same for every purpose. The rest is in making.ts and restating.ts. */
import type { Invocation } from "../cni/invocation.ts";
import { parsePrevResult } from "../cni/result-versions.ts";
import type { Result } from "../cni/result.ts";
import type { Attachment, PluginConfig } from "../contract/plugin.ts";
import type { Host } from "../contract/host.ts";
import { knownPlugin } from "./delegation/find-plugin.ts";

export interface DecodedCall<Config extends PluginConfig> {
  plugin: string;
  conf: Config;
  invocation: Invocation;
  /** Decoded on demand: on ADD most plugins ignore prevResult, which may then be malformed. */
  prevResult: () => Result | undefined;
  host: Host;
}

/** Tells the story: a plugin's `add`, or what replaces it. */
export type Tell<Config extends PluginConfig> = (at: Attachment<Config>) => Result;

export function facts<Config extends PluginConfig>({ conf, invocation, host }: DecodedCall<Config>) {
  const { containerId, ifName, netnsPath, cniArgs, stdin } = invocation;
  const plannedBefore: Attachment<Config>["plannedBefore"] = () => [];
  return { conf, network: conf.name, containerId, ifName, netnsPath, cniArgs, stdin, host, plannedBefore };
}

/** Decodes prevResult when it is first asked for, and once. */
export function prevResultOf(conf: PluginConfig): () => Result | undefined {
  let prevResult: Result | undefined, isRead = false;
  return () => {
    if (!isRead) prevResult = parsePrevResult(conf);
    isRead = true;
    return prevResult;
  };
}

/**
 * A lease is announced first, so it is released last, when nothing uses its address any more. One that is released through
 * the link is announced after the link, whoever's the plugin of that name is.
 */
export function isReleasedThroughLink(
  ipamType: string,
  { invocation: { path } }: DecodedCall<PluginConfig>,
): boolean {
  return knownPlugin(ipamType, path)?.isReleasedThroughLink === true;
}
