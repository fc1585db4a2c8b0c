/**
 * The files of a configuration directory: which of them hold networks, and reading one. Files may have comments and
 * trailing commas.
 */
import { CniError, errorText, INVALID_CONFIG } from "../../cni/error.ts";
import { identify, isDirectory, listDirectory, readConfiguredFile } from "../../ffi/files.ts";
import {
  invalidConfig,
  type Network,
  networkOfOnePlugin,
  type NetworkPlugin,
  parseNetwork,
  parsePluginText,
} from "./network.ts";

export const LONGEST_BYTES = 16 * 1024 * 1024;
const LIST_ENDING = ".conflist";
const SINGLE_PLUGIN_ENDINGS = [".conf", ".json"];
export const NETWORK_ENDINGS: readonly string[] = [LIST_ENDING, ...SINGLE_PLUGIN_ENDINGS];
const FOLDER_PLUGIN_ENDING = ".conf";

/** The files that may hold a network, in the order in which lookups by name read them. */
export function networkPaths(directory: string): string[] {
  return [...filesWithEnding(directory, [LIST_ENDING]), ...filesWithEnding(directory, SINGLE_PLUGIN_ENDINGS)];
}

/** Undefined for a single plugin without a name, which is not a network. */
export function readNetwork(path: string): Network | undefined {
  if (path.endsWith(LIST_ENDING)) return readNetworkList(path);
  const { name, config } = parsePluginText(readConfigFile(path));
  return name === "" ? undefined : networkOfOnePlugin(config, name);
}

/** A list from its file, together with the plugins in the folder named after the network. */
export function readNetworkList(path: string): Network {
  const network = parseNetwork(readConfigFile(path));
  const plugins = [...network.plugins];
  const folder = pluginFolder(network, path);
  if (folder !== undefined) plugins.push(...readPluginFolder(folder));
  if (plugins.length === 0) {
    throw new CniError(INVALID_CONFIG, "no plugin configs found", 'a list needs "plugins"');
  }
  return { ...network, plugins };
}

/** The files in a list's plugin folder; none when the list cannot be read. */
export function pluginFolderPaths(path: string): string[] {
  try {
    const folder = path.endsWith(LIST_ENDING) ? pluginFolder(parseNetwork(readConfigFile(path)), path) : undefined;
    return folder === undefined ? [] : filesWithEnding(folder, [FOLDER_PLUGIN_ENDING]);
  } catch {
    return [];
  }
}

function pluginFolder({ name, loadOnlyInlinedPlugins }: Network, path: string): string | undefined {
  // A name that is not a file name, such as "..", must not choose the folder; such a network cannot run anyway.
  const hasFolder = !loadOnlyInlinedPlugins && /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name);
  return hasFolder ? `${path.slice(0, path.lastIndexOf("/"))}/${name}` : undefined;
}

function readPluginFolder(folder: string): NetworkPlugin[] {
  let paths: string[];
  try {
    paths = filesWithEnding(folder, [FOLDER_PLUGIN_ENDING]);
  } catch (error) {
    throw invalidConfig(`failed to read plugin config files in ${folder}: ${errorText(error)}`, error);
  }
  // Most networks have no such folder, and the first `map` of a process is slow: docs/decisions/0005.
  return paths.length === 0 ? [] : paths.map((path) => parsePluginText(readConfigFile(path)));
}

/** Sorted; none when there is no such directory. */
function filesWithEnding(directory: string, endings: readonly string[]): string[] {
  const paths: string[] = [];
  for (const name of listDirectory(directory)) {
    if (!hasEnding(name, endings)) continue;
    const path = `${directory}/${name}`;
    if (!isDirectory(identify(path, false))) paths.push(path);
  }
  return paths;
}

export function hasEnding(name: string, endings: readonly string[]): boolean {
  return endings.includes(name.slice(Math.max(name.lastIndexOf("."), 0)));
}

function readConfigFile(path: string): string {
  let text: string | undefined;
  try {
    text = readConfiguredFile(path, LONGEST_BYTES);
  } catch (error) {
    throw invalidConfig(`error reading ${path}: ${errorText(error)}`, error);
  }
  if (text === undefined) throw invalidConfig(`error reading ${path}: open ${path}: no such file or directory`);
  return withoutComments(text);
}

/** Nearly every file is JSON. Bun.JSONC would read the others, too, but accepts whatever follows the document. */
function withoutComments(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    const { withoutExtensions } = require("./positioned-json.ts") as typeof import("./positioned-json.ts");
    return withoutExtensions(text);
  }
}
