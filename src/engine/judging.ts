/**
 * When a configuration is judged: ADD, CHECK, STATUS and plan reject what ADD rejects, and so does `inspect` of
 * attachments that others made. DEL and GC judge nothing: after a rejected ADD the runtime calls DEL with the same
 * configuration, and the configuration may have changed since ADD.
 */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import type { JudgedCall, PluginConfig, PluginDefinition } from "../contract/plugin.ts";

/** `call` is undefined for STATUS. */
export function judge<Config extends PluginConfig>(
  plugin: PluginDefinition<Config>,
  conf: Config,
  call: JudgedCall | undefined,
): void {
  plugin.judge?.(conf, call);
}

/** For ADD: a plugin that needs earlier ones cannot be the first of its chain. */
export function requirePrevResult({ missingPrevResult }: PluginDefinition<PluginConfig>, call: JudgedCall): void {
  if (missingPrevResult === undefined || call.prevResult !== undefined) return;
  throw new CniError(INVALID_CONFIG, missingPrevResult, "there is no prevResult");
}
