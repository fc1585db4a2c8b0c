/**
 * The configuration for DEL, without its malformed keys. ADD rejects a malformed configuration, and then the runtime
 * calls DEL with the same one. If that DEL failed, every retry would fail, and the earlier plugins of the chain would
 * never get their DEL.
 */
import { errorText } from "../cni/error.ts";
import { field } from "../cni/json.ts";
import { warn } from "../process/warn.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";

/** Omits malformed keys. A malformed `ipam` still throws, because without it nobody would release the address. */
export function lenientConf<Config extends PluginConfig>(
  plugin: PluginDefinition<Config>,
  document: Record<string, unknown>,
): Config {
  try {
    return plugin.validate(document);
  } catch (error) {
    const usable: Record<string, unknown> = {}, name = field(document, "name");
    for (const key in document) {
      if (isValid(plugin, { name, [key]: document[key] })) usable[key] = document[key];
      else if (key.toLowerCase() === "ipam") throw error;
    }
    const conf = plugin.validate(usable);
    warn(`DEL ignores malformed keys of the configuration: ${errorText(error)}`);
    return conf;
  }
}

function isValid(plugin: Pick<PluginDefinition<PluginConfig>, "validate">, document: unknown): boolean {
  try {
    plugin.validate(document);
    return true;
  } catch {
    return false;
  }
}
