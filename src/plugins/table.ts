/**
 * Every plugin by the name one types to run it. Loading is lazy: a process pays only for the plugin it is.
 * Sorted; a test compares it with the folders.
 */
import type { PluginConfig, PluginDefinition } from "../engine/plugin.ts";

// deno-lint-ignore no-explicit-any
type AnyPlugin = PluginDefinition<any>;

const table: Record<string, () => AnyPlugin> = {};

export const pluginNames: readonly string[] = Object.keys(table);

export function loadPlugin(name: string): PluginDefinition<PluginConfig> | undefined {
  return Object.hasOwn(table, name) ? table[name]!() : undefined;
}
