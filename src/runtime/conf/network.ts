/**
 * A network configuration as data (CNI spec 1.1.0, "Section 1: Network configuration format"). The order of checks and
 * the texts of errors are the reference library's.
 */
import { CniError, errorText, INVALID_CONFIG } from "../../cni/error.ts";
import { field, isObject, parseDocument } from "../../cni/json.ts";
import { compareVersions, CURRENT_VERSION } from "../../cni/versions.ts";

type JsonObject = Record<string, unknown>;

export interface Network {
  readonly name: string;
  /** The version the network runs in; "" when the configuration names none. */
  readonly cniVersion: string;
  readonly disableCheck: boolean;
  readonly disableGC: boolean;
  readonly plugins: readonly NetworkPlugin[];
  readonly loadOnlyInlinedPlugins: boolean;
  /** Set when the network was loaded by name. */
  readonly path?: string;
  /** The list as written, without comments. The result cache keeps it, and other engines read it there. */
  readonly source: string;
}

export interface NetworkPlugin {
  readonly type: string;
  /** The plugin object's own name, which only error messages show. */
  readonly name: string;
  readonly capabilities: Readonly<Record<string, boolean>>;
  readonly config: JsonObject;
}

// How messages begin, by what was being parsed.
const PARSING_LIST = "error parsing configuration list";
const PARSING_PLUGIN = "error parsing configuration";

/** A list from its text alone, without the plugins in its folder. */
export function parseNetwork(source: string): Network {
  const document = parseObject(source, PARSING_LIST);
  const name = document["name"];
  if (name === undefined) throw invalidConfig(`${PARSING_LIST}: no name`);
  if (typeof name !== "string") throw invalidConfig(`${PARSING_LIST}: invalid name type ${goType(name)}`);
  const cniVersion = selectVersion(document);
  const disableCheck = flag(document, "disableCheck");
  const disableGC = flag(document, "disableGC");
  const loadOnlyInlinedPlugins = flag(document, "loadOnlyInlinedPlugins");
  const plugins = document["plugins"];
  if (plugins === undefined && loadOnlyInlinedPlugins) {
    throw invalidConfig(`${PARSING_LIST}: \`loadOnlyInlinedPlugins\` is true, and no 'plugins' key`);
  }
  if (plugins !== undefined && !Array.isArray(plugins)) {
    throw invalidConfig(`${PARSING_LIST}: invalid 'plugins' type ${goType(plugins)}`);
  }
  if (plugins?.length === 0) throw invalidConfig(`${PARSING_LIST}: no plugins in list`);
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

/** A network of one plugin that stands in a file, or in a cache, by itself. */
export function networkOfOnePlugin(config: JsonObject, name: string): Network {
  const cniVersion = stringField(config, "cniVersion", PARSING_PLUGIN) ?? "";
  return parseNetwork(JSON.stringify({ cniVersion, name, plugins: [config] }));
}

export function parsePluginText(text: string): NetworkPlugin {
  return parsePlugin(parseObject(text, PARSING_PLUGIN), PARSING_PLUGIN);
}

/** A loop, because every `add` runs it: docs/decisions/0005. */
function parsePlugins(configs: readonly unknown[]): NetworkPlugin[] {
  const parsed: NetworkPlugin[] = [];
  for (const config of configs) {
    const subject = `${PARSING_LIST}: failed to parse plugin config ${parsed.length}: ${PARSING_PLUGIN}`;
    parsed.push(parsePlugin(config, subject));
  }
  return parsed;
}

/** The highest version both sides know when the list offers several; else the list's version, known or not. */
export function selectVersion(document: JsonObject): string {
  const stated = document["cniVersion"] ?? (Object.hasOwn(document, "cniVersion") ? null : "");
  if (typeof stated !== "string") throw invalidConfig(`${PARSING_LIST}: invalid cniVersion type ${goType(stated)}`);
  if (!Object.hasOwn(document, "cniVersions")) return stated;
  const offered = document["cniVersions"];
  if (!Array.isArray(offered)) {
    throw invalidConfig(`${PARSING_LIST}: invalid type for cniVersions: ${goType(offered)}`);
  }
  const isUsable = (version: string) => compareVersions(version, CURRENT_VERSION) <= 0;
  const usable = offered.filter((version: unknown, index) => {
    if (typeof version !== "string") {
      throw invalidConfig(`${PARSING_LIST}: invalid type for cniVersions index ${index}: ${goType(version)}`);
    }
    try {
      return isUsable(version);
    } catch (error) {
      throw invalidConfig(
        `${PARSING_LIST}: invalid cniVersions entry ${version} at index ${index}: ${errorText(error)}`,
        error,
      );
    }
  }) as string[];
  if (stated !== "" && isUsable(stated)) usable.push(stated);
  return usable.sort(compareVersions).at(-1) ?? stated;
}

function flag(document: JsonObject, key: string): boolean {
  const value = document[key];
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") throw invalidConfig(`${PARSING_LIST}: invalid type ${goType(value)} for ${key}`);
  const lowered = value.toLowerCase();
  if (lowered !== "true" && lowered !== "false") {
    throw invalidConfig(`${PARSING_LIST}: invalid value "${lowered}" for ${key}`);
  }
  return lowered === "true";
}

/** Checks the types of the keys that all plugins share, and nothing else. */
function parsePlugin(config: unknown, subject: string): NetworkPlugin {
  if (!isObject(config)) throw invalidConfig(`${subject}: invalid type ${goType(config)}`);
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
    if (typeof value !== "boolean") {
      throw invalidConfig(`${subject}: capability "${key}" is ${goType(value)}, not bool`);
    }
  }
  if (type === undefined || type === "") throw invalidConfig(`${subject}: missing 'type'`);
  return { type, name, capabilities: capabilities as Record<string, boolean>, config };
}

function stringField(object: JsonObject, key: string, subject: string): string | undefined {
  const value = field(object, key) ?? undefined;
  if (value !== undefined && typeof value !== "string") {
    throw invalidConfig(`${subject}: "${key}" is ${goType(value)}, not string`);
  }
  return value;
}

function objectField(object: JsonObject, key: string, subject: string): JsonObject | undefined {
  const value = field(object, key) ?? undefined;
  if (value !== undefined && !isObject(value)) {
    throw invalidConfig(`${subject}: "${key}" is ${goType(value)}, not an object`);
  }
  return value;
}

function parseObject(text: string, subject: string): JsonObject {
  const document = parseDocument(text, subject);
  if (!isObject(document)) throw invalidConfig(`${subject}: invalid type ${goType(document)}`);
  return document;
}

const goTypes: Partial<Record<string, string>> = {
  number: "float64",
  boolean: "bool",
  object: "map[string]interface {}",
};

/** A value's type as the reference library's messages name it. */
function goType(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  return goTypes[typeof value] ?? typeof value;
}

export function invalidConfig(message: string, cause?: unknown): CniError {
  return new CniError(INVALID_CONFIG, message, "", { cause });
}
