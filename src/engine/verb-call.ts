/** The argument of the verbs in verbs/. run.ts does what all verbs have in common. */
import type { Invocation } from "../cni/invocation.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import type { Session } from "./session.ts";

export interface VerbCall {
  plugin: PluginDefinition<PluginConfig>;
  invocation: Invocation;
  /** The parsed configuration: keys as written, nothing validated. */
  document: Record<string, unknown>;
  session: Session;
}

/** Such a plugin makes nothing in the container, so the container's namespace may be gone for every verb. */
export function ownsNothingInside(plugin: PluginDefinition<PluginConfig>): boolean {
  return plugin.del !== undefined || plugin.keepsNothing === true;
}
