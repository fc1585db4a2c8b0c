/** How full the pools are that a plugin's ADD takes addresses from, by itself or by the plugins it delegates to. */
import { field, isObject } from "../../cni/json.ts";
import { loadPlugin } from "../../plugins/table.ts";
import type { Pool } from "../../contract/plugin.ts";

/** Nothing of plugins that are not ours, nor of a configuration that STATUS refuses. */
export function poolsOf(type: string, document: unknown): Pool[] {
  try {
    const plugin = loadPlugin(type), conf = plugin?.validate(document);
    if (plugin?.pools !== undefined) return plugin.pools(conf!);
    const other = plugin?.passedOn?.(conf!);
    if (other !== undefined) return poolsOf(other.type, other.conf);
    const ipam = isObject(document) ? field(document, "ipam") : undefined;
    const ipamType = isObject(ipam) ? field(ipam, "type") : undefined;
    return typeof ipamType === "string" && ipamType !== type ? poolsOf(ipamType, document) : [];
  } catch {
    return [];
  }
}
