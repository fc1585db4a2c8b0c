/** How full the address pools of a plugin are, its own and those of its delegates. */
import { field, isObject } from "../../cni/json.ts";
import { loadPlugin } from "../../plugins/table.ts";
import type { Pool } from "../../contract/shown.ts";

/** Empty for foreign plugins and for a configuration that STATUS rejects. */
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
