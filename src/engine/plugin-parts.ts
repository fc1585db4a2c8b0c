/** Which plugins a plugin of a network calls: what it delegates to, and the IPAM plugin. */
import { field, isObject } from "../cni/json.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { loadPlugin } from "../plugins/table.ts";

/** A plugin, and what it would get now. */
export interface ConfiguredPlugin {
  type: string;
  document: Record<string, unknown>;
}

/** `plugin` is undefined for foreign plugins, `conf` also for what is refused. */
export interface PluginPart extends ConfiguredPlugin {
  plugin: PluginDefinition<PluginConfig> | undefined;
  conf: PluginConfig | undefined;
}

/** The plugin first, then the one that it delegates to, or else its IPAM plugin. `load` returns those that are ours. */
export function pluginParts(
  { type, document }: ConfiguredPlugin,
  load: (type: string) => PluginPart["plugin"] = loadPlugin,
): PluginPart[] {
  const plugin = load(type), conf = acceptedBy(plugin, document), part = { type, document, plugin, conf };
  const other = conf && plugin?.passedOn?.(conf), ipamType = ipamTypeOf(document);
  if (other !== undefined) return [part, ...pluginParts({ type: other.type, document: other.conf }, load)];
  return ipamType === "" || ipamType === type ? [part] : [part, ...pluginParts({ type: ipamType, document }, load)];
}

/** "" without an IPAM plugin. */
export function ipamTypeOf(document: Readonly<Record<string, unknown>>): string {
  const ipam = field(document, "ipam"), type = isObject(ipam) ? field(ipam, "type") : undefined;
  return typeof type === "string" ? type : "";
}

/** ADD and STATUS say why it is refused. */
function acceptedBy(plugin: PluginPart["plugin"], document: Record<string, unknown>): PluginConfig | undefined {
  try {
    return plugin?.validate(document);
  } catch {
    return undefined;
  }
}
