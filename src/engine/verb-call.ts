/** The argument of the verbs in verbs/. run.ts does what all verbs have in common. */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import type { Invocation, Verb } from "../cni/invocation.ts";
import { field, isObject, type ParsedObject, parseDocument } from "../cni/json.ts";
import { checkVersions, configVersion, KNOWN_VERSIONS } from "../cni/versions.ts";
import type { Owner } from "../contract/owner.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import type { Session } from "./session.ts";

export interface VerbCall {
  plugin: PluginDefinition<PluginConfig>;
  invocation: Invocation;
  /** The parsed configuration: keys as written, nothing validated. */
  document: Record<string, unknown>;
  session: Session;
}

export function ownerOf({ invocation: { containerId, ifName }, document }: VerbCall): Owner {
  return { network: String(field(document, "name")), containerId, ifName };
}

/** The call's configuration, in a version in which the plugin has the verb `negotiated`. */
export function acceptedDocument(
  plugin: PluginDefinition<PluginConfig>,
  { document, stdin }: Invocation,
  negotiated: Verb,
): ParsedObject {
  const parsed = document ?? parseDocument(stdin, "error unmarshall network config");
  if (!isObject(parsed)) throw new CniError(INVALID_CONFIG, "the network configuration must be a JSON object");
  requireVersion(plugin, parsed, negotiated);
  return parsed;
}

export function requireVersion(
  { versions = KNOWN_VERSIONS }: PluginDefinition<PluginConfig>,
  document: Record<string, unknown>,
  negotiated: Verb,
): void {
  checkVersions(negotiated, configVersion(document), versions);
}

/** Such a plugin makes nothing in the container, so the container's namespace may be gone for every verb. */
export function ownsNothingInside(plugin: PluginDefinition<PluginConfig>): boolean {
  return plugin.del !== undefined || plugin.keepsNothing === true;
}
