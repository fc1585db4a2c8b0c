/**
 * When a configuration is judged: ADD, CHECK, STATUS and plan reject what ADD rejects, and so does `inspect` of
 * attachments that others made. DEL and GC judge nothing: after a rejected ADD the runtime calls DEL with the same
 * configuration, and the configuration may have changed since ADD.
 */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import type { Invocation } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { JudgedCall, PluginConfig, PluginDefinition } from "../contract/plugin.ts";

/** STATUS has no call to judge, so it leaves out the last two. */
export function judge<Config extends PluginConfig>(
  plugin: PluginDefinition<Config>,
  conf: Config,
  invocation?: Invocation,
  prevResult?: () => Result | undefined,
): void {
  const call = invocation && judgedCall(invocation, prevResult);
  plugin.judge?.(conf, call);
}

function judgedCall({ ifName, cniArgs, stdin }: Invocation, prevResult?: () => Result | undefined): JudgedCall {
  return {
    ifName,
    cniArgs,
    stdin,
    // Few plugins ask for it.
    get prevResult() {
      return prevResult?.();
    },
  };
}

/** The decoded configuration, unless ADD would reject it whatever the call says: for STATUS and `patchbay lint`. */
export function judgedConf<Config extends PluginConfig>(plugin: PluginDefinition<Config>, document: unknown): Config {
  const conf = plugin.validate(document);
  judge(plugin, conf);
  return conf;
}

const BEHIND = 'in a list, it stands behind the plugin that makes the interface, such as "bridge"';

/** For ADD: a plugin that needs earlier ones cannot be the first of its chain. */
export function requirePrevResult(
  { missingPrevResult }: PluginDefinition<PluginConfig>,
  prevResult: () => Result | undefined,
): void {
  if (missingPrevResult === undefined || prevResult() !== undefined) return;
  throw new CniError(INVALID_CONFIG, missingPrevResult, `there is no prevResult; ${BEHIND}`);
}
