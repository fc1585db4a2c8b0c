/**
 * Network configurations: reading them from a directory, and what counts as one.
 *
 * CNI spec 1.1.0, "Section 1: Network configuration format"; order of checks, texts and the rules of loading by name
 * are the reference library's. Comments and trailing commas are accepted besides.
 */
import { CniError, errorText, INVALID_CONFIG } from "../cni/error.ts";
import { field, isObject, parseDocument } from "../cni/json.ts";
import { compareVersions, CURRENT_VERSION } from "../cni/versions.ts";
import { identify, isDirectory, listDirectory, readTextFile } from "../ffi/files.ts";

type JsonObject = Record<string, unknown>;

export interface Network {
  readonly name: string;
  /** The version the network is run in; "" when the configuration names none. */
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly disableGC: boolean;
  readonly plugins: readonly NetworkPlugin[];
  readonly loadOnlyInlinedPlugins: boolean;
  /** The file it was loaded from by name. */
  readonly path?: string;
  /** The list as it stands in the file, less its comments: the result cache keeps it for other engines too. */
  readonly source: string;
}

export interface NetworkPlugin {
  readonly type: string;
  /** A name of the plugin object itself, which only error messages show. */
  readonly name: string;
  readonly capabilities: Readonly<Record<string, boolean>>;
  readonly config: JsonObject;
}

/** The network of that name; a list wins over a single-plugin file. An unreadable file on the way is an error. */
export function loadNetwork(directory: string, name: string): Network {
  const paths = networkPaths(directory);
  for (const path of paths) {
    const found = readNetwork(path, name);
    if (found !== undefined) return found;
  }
  const { hintFor } = require("./network-files.ts") as typeof import("./network-files.ts");
  const message = paths.length === 0
    ? `no net configurations found in ${directory}`
    : `no net configuration with name "${name}" in ${directory}`;
  throw new UnknownNetworkError(INVALID_CONFIG, message, hintFor(directory, name));
}

/** No file has a network of the name. */
export class UnknownNetworkError extends CniError {}

/** In the order in which they are looked through. */
export function networkPaths(directory: string): string[] {
  return [...configFiles(directory, [LIST]), ...configFiles(directory, [".conf", ".json"])];
}

const LIST = ".conflist";

/** The file's network, or undefined when that has not the name. A file that is in the way of others names itself. */
function readNetwork(path: string, name: string): Network | undefined {
  try {
    const network = readAnyNetwork(path);
    return network?.name === name ? { ...network, path } : undefined;
  } catch (error) {
    const { located } = require("./network-files.ts") as typeof import("./network-files.ts");
    throw located(path, error, name);
  }
}

/** Undefined for a single plugin without a name, which is no network. */
export function readAnyNetwork(path: string): Network | undefined {
  if (path.endsWith(LIST)) return readNetworkFile(path);
  const { config } = parsePlugin(parseObject(readConfigFile(path), plugin), plugin);
  const name = stringField(config, "name", plugin);
  return name ? networkOfOnePlugin(config, name) : undefined;
}

/** Paths of files with one of the endings, sorted; none when there is no such directory. */
function configFiles(directory: string, endings: readonly string[]): string[] {
  const paths: string[] = [];
  for (const name of listDirectory(directory)) {
    if (!endings.includes(name.slice(Math.max(name.lastIndexOf("."), 0)))) continue;
    const path = `${directory}/${name}`;
    if (!isDirectory(identify(path, false))) paths.push(path);
  }
  return paths;
}

function readConfigFile(path: string): string {
  let text: string | undefined;
  try {
    text = readTextFile(path);
  } catch (error) {
    throw invalid(`error reading ${path}: ${errorText(error)}`, error);
  }
  if (text === undefined) throw invalid(`error reading ${path}: open ${path}: no such file or directory`);
  return withoutComments(text);
}

export function networkOfOnePlugin(config: JsonObject, name: string): Network {
  const cniVersion = stringField(config, "cniVersion", plugin) ?? "";
  return parseNetwork(JSON.stringify({ cniVersion, name, plugins: [config] }));
}

/** A list from its file, together with the plugins in the folder named after the network. */
export function readNetworkFile(path: string): Network {
  const network = parseNetwork(readConfigFile(path));
  const plugins = [...network.plugins];
  const folder = folderOf(network, path);
  if (folder !== undefined) plugins.push(...folderPlugins(folder));
  if (plugins.length === 0) throw invalid("no plugin configs found");
  return { ...network, plugins };
}

function folderOf({ name, loadOnlyInlinedPlugins }: Network, path: string): string | undefined {
  // A name that is no file name, such as "..", must not choose the folder; such a network cannot be run anyway.
  const hasFolder = !loadOnlyInlinedPlugins && /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(name);
  return hasFolder ? `${path.slice(0, path.lastIndexOf("/"))}/${name}` : undefined;
}

/** The files with a list's other plugins; none of a file that cannot be read. */
export function folderPaths(path: string): string[] {
  try {
    const folder = path.endsWith(LIST) ? folderOf(parseNetwork(readConfigFile(path)), path) : undefined;
    return folder === undefined ? [] : configFiles(folder, [".conf"]);
  } catch {
    return [];
  }
}

function folderPlugins(folder: string): NetworkPlugin[] {
  let paths: string[];
  try {
    paths = configFiles(folder, [".conf"]);
  } catch (error) {
    throw invalid(`failed to read plugin config files in ${folder}: ${errorText(error)}`, error);
  }
  return paths.length === 0
    ? []
    : paths.map((path) => parsePlugin(parseObject(readConfigFile(path), plugin), plugin));
}

// What a message starts with, by what was being read.
const list = "error parsing configuration list";
const plugin = "error parsing configuration";

/** A list from its text alone: plugins in a folder are not part of it. */
export function parseNetwork(source: string): Network {
  const document = parseObject(source, list);
  const name = document["name"];
  if (name === undefined) throw invalid(`${list}: no name`);
  if (typeof name !== "string") throw invalid(`${list}: invalid name type ${goType(name)}`);
  const cniVersion = selectVersion(document);
  const disableCheck = flag(document, "disableCheck");
  const disableGC = flag(document, "disableGC");
  const loadOnlyInlinedPlugins = flag(document, "loadOnlyInlinedPlugins");
  const plugins = document["plugins"];
  if (plugins === undefined && loadOnlyInlinedPlugins) {
    throw invalid(`${list}: \`loadOnlyInlinedPlugins\` is true, and no 'plugins' key`);
  }
  if (plugins !== undefined && !Array.isArray(plugins)) {
    throw invalid(`${list}: invalid 'plugins' type ${goType(plugins)}`);
  }
  if (plugins?.length === 0) throw invalid(`${list}: no plugins in list`);
  return {
    name,
    cniVersion,
    disableCheck,
    disableGC,
    plugins: parsePlugins(plugins ?? []),
    loadOnlyInlinedPlugins,
    source,
  };
}

/** (A loop, as every `add` runs it: docs/decisions/0005.) */
function parsePlugins(configs: readonly unknown[]): NetworkPlugin[] {
  const parsed: NetworkPlugin[] = [];
  for (const config of configs) {
    parsed.push(parsePlugin(config, `${list}: failed to parse plugin config ${parsed.length}: ${plugin}`));
  }
  return parsed;
}

/** The highest version both sides know when the list offers several; else what it says, known or not. */
function selectVersion(document: JsonObject): string {
  const stated = document["cniVersion"] ?? (Object.hasOwn(document, "cniVersion") ? null : "");
  if (typeof stated !== "string") throw invalid(`${list}: invalid cniVersion type ${goType(stated)}`);
  if (!Object.hasOwn(document, "cniVersions")) return stated;
  const offered = document["cniVersions"];
  if (!Array.isArray(offered)) throw invalid(`${list}: invalid type for cniVersions: ${goType(offered)}`);
  const isUsable = (version: string) => compareVersions(version, CURRENT_VERSION) <= 0;
  const usable = offered.filter((version: unknown, index) => {
    if (typeof version !== "string") {
      throw invalid(`${list}: invalid type for cniVersions index ${index}: ${goType(version)}`);
    }
    try {
      return isUsable(version);
    } catch (error) {
      throw invalid(`${list}: invalid cniVersions entry ${version} at index ${index}: ${errorText(error)}`, error);
    }
  }) as string[];
  if (stated !== "" && isUsable(stated)) usable.push(stated);
  return usable.sort(compareVersions).at(-1) ?? stated;
}

function flag(document: JsonObject, key: string): boolean {
  const value = document[key];
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") throw invalid(`${list}: invalid type ${goType(value)} for ${key}`);
  const lowered = value.toLowerCase();
  if (lowered !== "true" && lowered !== "false") throw invalid(`${list}: invalid value "${lowered}" for ${key}`);
  return lowered === "true";
}

/** Throws unless the keys every plugin has in common are of the right type; leaves all others alone. */
function parsePlugin(config: unknown, subject: string): NetworkPlugin {
  if (!isObject(config)) throw invalid(`${subject}: invalid type ${goType(config)}`);
  const type = stringField(config, "type", subject);
  const name = stringField(config, "name", subject) ?? "";
  stringField(config, "cniVersion", subject);
  objectField(config, "prevResult", subject);
  objectField(config, "dns", subject);
  const ipam = objectField(config, "ipam", subject);
  if (ipam !== undefined) stringField(ipam, "type", `${subject}: ipam`);
  const capabilities = objectField(config, "capabilities", subject) ?? {};
  for (const key of Object.keys(capabilities)) {
    const value = capabilities[key];
    if (typeof value !== "boolean") throw invalid(`${subject}: capability "${key}" is ${goType(value)}, not bool`);
  }
  if (type === undefined || type === "") throw invalid(`${subject}: missing 'type'`);
  return { type, name, capabilities: capabilities as Record<string, boolean>, config };
}

function stringField(object: JsonObject, key: string, subject: string): string | undefined {
  const value = field(object, key) ?? undefined;
  if (value !== undefined && typeof value !== "string") {
    throw invalid(`${subject}: "${key}" is ${goType(value)}, not string`);
  }
  return value;
}

function objectField(object: JsonObject, key: string, subject: string): JsonObject | undefined {
  const value = field(object, key) ?? undefined;
  if (value !== undefined && !isObject(value)) {
    throw invalid(`${subject}: "${key}" is ${goType(value)}, not an object`);
  }
  return value;
}

function parseObject(text: string, subject: string): JsonObject {
  const document = parseDocument(text, subject);
  if (!isObject(document)) throw invalid(`${subject}: invalid type ${goType(document)}`);
  return document;
}

/** (Bun.JSONC would do, did it not also take whatever follows the document.) */
function withoutComments(text: string): string {
  try {
    JSON.parse(text);
    return text;
  } catch {
    const string = '"(?:[^"\\\\]|\\\\.)*"';
    const keepStrings = (match: string) => (match.startsWith('"') ? match : " ");
    return text
      .replace(new RegExp(`${string}|//[^\\n]*|/\\*[^]*?\\*/`, "g"), keepStrings)
      .replace(new RegExp(`${string}|,(?=\\s*[}\\]])`, "g"), keepStrings);
  }
}

/** The name by which the reference library's messages call a value's type. */
function goType(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  switch (typeof value) {
    case "number":
      return "float64";
    case "boolean":
      return "bool";
    case "object":
      return "map[string]interface {}";
  }
  return typeof value;
}

function invalid(message: string, cause?: unknown): CniError {
  return new CniError(INVALID_CONFIG, message, "", { cause });
}
