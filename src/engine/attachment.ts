/** What a plugin sees of an attachment, whatever its story is told for. The rest is in making.ts and restating.ts. */
import type { Invocation } from "../cni/invocation.ts";
import { parsePrevResult } from "../cni/result-versions.ts";
import type { Result } from "../cni/result.ts";
import type { Attachment, JudgedCall, PluginConfig } from "../contract/plugin.ts";
import type { Host } from "../contract/host.ts";

export interface Call<Config extends PluginConfig> {
  plugin: string;
  conf: Config;
  invocation: Invocation;
  /** Most plugins ignore prevResult on ADD, where it may be in any shape: only those who need it decode it. */
  prevResult: () => Result | undefined;
  host: Host;
}

/** Tells the story: `add` of a plugin, or what stands for it. */
export type Tell<Config extends PluginConfig> = (at: Attachment<Config>) => Result;

export function facts<Config extends PluginConfig>({ conf, invocation, host }: Call<Config>) {
  const { containerId, ifName, netnsPath, cniArgs, stdin } = invocation;
  return { conf, network: conf.name, containerId, ifName, netnsPath, cniArgs, stdin, host };
}

/** What is judged of the call. */
export function judgedCall(conf: PluginConfig, { ifName, cniArgs, stdin }: Invocation): JudgedCall {
  let prevResult: Result | undefined, isRead = false;
  return {
    ifName,
    cniArgs,
    stdin,
    get prevResult() {
      if (!isRead) prevResult = parsePrevResult(conf);
      isRead = true;
      return prevResult;
    },
  };
}

/**
 * A lease is announced first, and so given back last: when nothing has its address any more. That of a DHCP server is
 * given back by a packet through the link, so it is announced when the link is there.
 */
export function goesByTheLink(ipamType: string): boolean {
  return ipamType === "dhcp";
}
