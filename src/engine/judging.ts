/**
 * Who is judged when: ADD, CHECK, STATUS and plan refuse a configuration that ADD refuses, and so does `inspect` of what
 * others made. DEL and GC judge nothing: whoever was refused by ADD calls DEL with the same configuration, and a
 * configuration that is refused today may have been another one at ADD.
 */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import type { JudgedCall, PluginConfig, PluginDefinition } from "../contract/plugin.ts";

/** STATUS has no call. */
export function judge<Config extends PluginConfig>(
  plugin: PluginDefinition<Config>,
  conf: Config,
  call: JudgedCall | undefined,
): void {
  plugin.judge?.(conf, call);
}

/** For ADD: a plugin that works on what earlier ones made cannot be the first. */
export function requirePrevResult({ missingPrevResult }: PluginDefinition<PluginConfig>, call: JudgedCall): void {
  if (missingPrevResult === undefined || call.prevResult !== undefined) return;
  throw new CniError(INVALID_CONFIG, missingPrevResult, "there is no prevResult");
}
