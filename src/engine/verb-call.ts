/** A verb as the files in verbs/ implement it, behind everything that the verbs have in common (run.ts). */
import type { Invocation } from "../cni/invocation.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import type { Session } from "./session.ts";

export interface VerbCall {
  plugin: PluginDefinition<PluginConfig>;
  invocation: Invocation;
  /** The configuration as it was parsed: keys as written, nothing checked. */
  document: Record<string, unknown>;
  session: Session;
}

/** Such a plugin makes nothing in the container, so the container's namespace may be gone for any verb. */
export function ownsNothingInside(plugin: PluginDefinition<PluginConfig>): boolean {
  return plugin.del !== undefined || plugin.keepsNothing === true;
}
