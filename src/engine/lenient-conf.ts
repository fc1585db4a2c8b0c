/**
 * The configuration as far as DEL can use it. ADD refuses a wrong one; but whoever is refused calls DEL with the same
 * configuration, and a DEL that fails, fails for good, and with it those of the plugins before it in the chain.
 */
import { errorText } from "../cni/error.ts";
import { field } from "../cni/json.ts";
import { warn } from "../ffi/warn.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";

/** Leaves out the keys that are wrong by themselves. Without a readable `ipam` nobody would give back the address. */
export function usableConf<Config extends PluginConfig>(
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
    warn(`DEL goes on in spite of the configuration: ${errorText(error)}`);
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
