/**
 * One verb of one plugin, in process. The exec'd plugin and the runtime's chains both come through here.
 */
import type { PluginConfig, PluginDefinition } from "./plugin.ts";
import type { Result } from "../cni/result.ts";

export type Command = "ADD" | "DEL" | "CHECK" | "GC" | "STATUS" | "VERSION";

/** The parameters of one call: the CNI_* environment and the configuration as it came on stdin. */
export interface Invocation {
  command: Command;
  containerId: string;
  /** CNI_NETNS word for word; "" when it was not given. */
  netnsPath: string;
  ifName: string;
  /** CNI_ARGS word for word. */
  cniArgs: string;
  /** CNI_PATH word for word. */
  path: string;
  /** The network configuration, JSON text. */
  stdin: string;
}

/** Answers ADD's result (newest form, `cniVersion` as configured), nothing for other verbs. Throws CniError. */
export function runVerb(_plugin: PluginDefinition<PluginConfig>, _invocation: Invocation): Result | undefined {
  throw new Error("being written");
}
