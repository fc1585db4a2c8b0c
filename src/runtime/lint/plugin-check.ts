/** Checks a configuration by the plugin itself: what it rejects, and what it never gets. */
import { CniError, errorText } from "../../cni/error.ts";
import { configVersion, KNOWN_VERSIONS } from "../../cni/versions.ts";
import { judgedConf, requirePrevResult } from "../../engine/judging.ts";
import { requireVersion } from "../../engine/verb-call.ts";
import { loadPlugin } from "../../plugins/table.ts";
import { selectVersion } from "../conf/network.ts";
import type { JsonNode } from "../conf/positioned-json.ts";
import { entryOf, nodeAt } from "./json-nodes.ts";
import { keyPath, type Remark, remark, type Reporter } from "./remark.ts";
import { pluginSchema } from "./schema.ts";

export interface PluginInFile {
  /** The plugin's path in the document. */
  path: string;
  report: Reporter;
  /** No other plugin is called before it. */
  isFirst: boolean;
}

/** `bySchema`: what the schema says of its values. `subject` is the key of what the plugin rejects as a whole. */
export function checkByPlugin(
  type: string,
  config: Record<string, unknown>,
  node: JsonNode,
  { path, report, isFirst }: PluginInFile,
  bySchema: readonly Remark[],
  subject = "",
): void {
  const plugin = loadPlugin(type);
  if (plugin === undefined) return;
  try {
    if (KNOWN_VERSIONS.includes(configVersion(config))) requireVersion(plugin, config, "ADD");
    if (isFirst) requirePrevResult(plugin, () => undefined);
    const conf = judgedConf(plugin, config), lacking = plugin.missingCapability?.(conf);
    if (lacking === undefined || takesCapability(node, lacking)) return;
    const message = `lacks ${JSON.stringify(lacking)}: true, so no engine tells ${type} what to do`;
    report(remark(nodeAt(node, "capabilities"), "warning", keyPath(path, "capabilities"), message));
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    const [, key = "", message] = /^[^"]*"([^"]*)":? ([^]*)$/.exec(error.message) ?? [];
    // Other words in quotes are no keys.
    if (message !== undefined && isKey(type, key, node)) {
      report(remark(nodeAt(node, key), "error", keyPath(path, key), message));
      return;
    }
    const text = errorText(error), named = bySchema.find((one) => isOfValue(one) && isNamedIn(text, one.key));
    if (named !== undefined) report(remark(named, "error", named.key, text));
    else report(remark(nodeAt(node, subject), "error", subject === "" ? path : keyPath(path, subject), text));
  }
}

function isOfValue({ message }: Remark): boolean {
  return message.startsWith("must ") || message === "is missing";
}

/** Plugins have words of their own for a key: `unknown macvlan mode: "x"`. */
function isNamedIn(text: string, path: string): boolean {
  const key = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  return text.toLowerCase().split(/[^a-z0-9_]+/).includes(key);
}

/** Whether the plugin knows such a key. */
function isKey(type: string, path: string, node: JsonNode): boolean {
  const [first = ""] = path.split(/[.[]/);
  return entryOf(node, first) !== undefined || Object.hasOwn(pluginSchema(type, "")?.properties ?? {}, first);
}

function takesCapability(node: JsonNode, name: string): boolean {
  const capability = entryOf(node, "capabilities")?.value.entries?.find(({ key }) => key === name);
  return capability?.value.value === true;
}

/** What a plugin is called with; a version that cannot be selected is reported for the list. */
export function nameAndVersion(network: Record<string, unknown>): { name?: string; cniVersion?: string } {
  const { name } = network;
  let cniVersion: string | undefined;
  try {
    cniVersion = selectVersion(network);
  } catch {
    // Reported by loading the file.
  }
  return { ...typeof name === "string" && { name }, ...cniVersion !== undefined && { cniVersion } };
}
