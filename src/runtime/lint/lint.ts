/** `patchbay lint`: checks configuration files against the schemas, and by what plugins and loader themselves reject. */
import { errorText } from "../../cni/error.ts";
import { isObject } from "../../cni/json.ts";
import { checkNetworkName } from "../../cni/invocation.ts";
import { compareVersions, CURRENT_VERSION, KNOWN_VERSIONS } from "../../cni/versions.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { findPlugin } from "../../engine/delegation/find-plugin.ts";
import { readConfiguredFile } from "../../ffi/files.ts";
import { pluginNamed, pluginNames } from "../../plugins/table.ts";
import { caveatsOf } from "../caveats.ts";
import { listNetworkFiles, misnamedFiles } from "../conf/directory.ts";
import {
  hasEnding,
  LONGEST_BYTES,
  NETWORK_ENDINGS,
  networkPaths,
  pluginFolderPaths,
  readNetwork,
} from "../conf/network-file.ts";
import type { Network } from "../conf/network.ts";
import { type JsonNode, JsonSyntaxError, lineAndColumn, parseWithPositions } from "../conf/positioned-json.ts";
import { claimantsIn, overlapsWith } from "../overlaps.ts";
import { closestKey } from "../../cni/spelling.ts";
import { entryOf, nodeAt, stringAt } from "./json-nodes.ts";
import { checkByPlugin, nameAndVersion, type PluginInFile } from "./plugin-check.ts";
import { keyPath, type Remark, remark, type Reporter, type Severity } from "./remark.ts";
import { checkSchema, OPTION_OF } from "./schema-check.ts";
import { delegates, ipamSchema, listSchema, pluginSchema, type Schema, wellKnownCapabilities } from "./schema.ts";

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly severity: Severity;
  readonly key: string;
  readonly message: string;
  readonly meant?: string;
}

/** In the form of a compiler's messages, so that editors find the position. */
export function describeFinding({ file, line, column, severity, key, message, meant }: Finding): string {
  const subject = key === "" ? "" : `"${key}" `;
  const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  return `${file}:${line}:${column}: ${severity}: ${subject}${message}${hint}`;
}

export function isMisplaced({ message }: Finding): boolean {
  return message.startsWith(OPTION_OF);
}

export function lintDirectory(directory: string, pluginPath: string): Finding[] {
  const findings = networkPaths(directory).flatMap((path) => lintNetwork(path, pluginPath));
  const files = listNetworkFiles(directory), claimants = claimantsIn(files);
  for (const claimant of claimants) {
    for (const message of overlapsWith(claimant, claimants)) {
      findings.push({ file: claimant.path, line: 1, column: 1, severity: "warning", key: "", message });
    }
  }
  for (const { path, network, hiddenBy } of files) {
    if (hiddenBy === undefined || network === undefined) continue;
    const message = `network "${network.name}" cannot be reached: ${hiddenBy} comes first, and ` +
      (findings.some(({ file, severity }) => file === hiddenBy && severity === "error")
        ? "cannot be read"
        : "has the same name");
    findings.push({ file: path, line: 1, column: 1, severity: "error", key: "name", message });
  }
  return [...findings, ...unread(directory, files.length === 0)];
}

function unread(directory: string, isEmpty: boolean): Finding[] {
  const read = `networks are in files whose names end in ${NETWORK_ENDINGS.join(", ")}`;
  const place = { line: 1, column: 1, key: "" }, message = `is not read: ${read}`;
  const findings = misnamedFiles(directory)
    .map(({ path: file, meant }): Finding => ({ ...place, file, severity: "warning", message, meant }));
  if (!isEmpty || findings.length > 0) return findings;
  return [{ ...place, file: directory, severity: "note", message: `has no network: ${read}` }];
}

/** A network's file, and those in its plugin folder. */
export function lintNetwork(path: string, pluginPath: string): Finding[] {
  return [path, ...pluginFolderPaths(path)].flatMap((file) => lintFile(file, pluginPath));
}

function lintFile(file: string, pluginPath: string): Finding[] {
  try {
    const text = readConfiguredFile(file, LONGEST_BYTES);
    return text === undefined ? [unreadable(file, "no such file")] : lintText(file, text, pluginPath);
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    return [unreadable(file, errorText(error))];
  }
}

function unreadable(file: string, message: string): Finding {
  return { file, line: 1, column: 1, severity: "error", key: "", message };
}

function lintText(file: string, text: string, pluginPath: string): Finding[] {
  const remarks: Remark[] = [];
  const report: Reporter = (remark) => remarks.push(remark);
  try {
    const extensions: number[] = [];
    const document = parseWithPositions(text, ({ start }) => extensions.push(start));
    if (extensions.length > 0) report(tolerated(Math.min(...extensions)));
    checkDocument(document, pluginPath, report);
    if (!remarks.some(({ severity }) => severity === "error")) checkByLoading(file, document, report);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    report(remark({ start: error.offset, end: error.offset }, "error", "", error.message));
  }
  // An error says more than a warning about the same value.
  const isSaid = ({ severity, start, key }: Remark) =>
    severity === "warning" &&
    remarks.some((other) => other.severity === "error" && other.start === start && other.key === key);
  return remarks.filter((one) => !isSaid(one)).sort((one, other) => one.start - other.start).map((
    { start, end: _, ...remark },
  ) => ({
    file,
    ...lineAndColumn(text, start),
    ...remark,
  }));
}

function tolerated(start: number): Remark {
  const message = "comments and trailing commas are read here, but engines that read the file with Go's libcni " +
    "(containerd, podman) refuse it";
  return remark({ start, end: start }, "note", "", message);
}

function checkDocument(document: JsonNode, pluginPath: string, report: Reporter): void {
  if (!isObject(document.value)) {
    report(remark(document, "error", "", "must be an object"));
    return;
  }
  checkVersion(document, report);
  const plugins = entryOf(document, "plugins");
  if (plugins === undefined && entryOf(document, "type") !== undefined) {
    // Without a name it is a plugin in a network's folder, whose place in the list is not known.
    checkPlugin(document, { path: "", pluginPath, report, isFirst: entryOf(document, "name") !== undefined });
    return;
  }
  checkSchema(document, withAnyPlugins(listSchema()), "", report);
  checkName(document, report);
  plugins?.value.items?.forEach((plugin, index) => {
    const path = `plugins[${index}]`;
    checkPlugin(plugin, { path, pluginPath, report, network: document.value, isFirst: index === 0 });
  });
}

/** Each plugin is checked by its own schema. */
function withAnyPlugins(schema: Schema): Schema {
  const plugins: Schema = { type: "array", items: { type: "object" } };
  return { ...schema, properties: { ...schema.properties, plugins }, required: ["name"] };
}

function checkName(document: JsonNode, report: Reporter): void {
  const name = stringAt(document, "name");
  if (name === undefined) return;
  try {
    checkNetworkName(name);
  } catch (error) {
    report(remark(entryOf(document, "name")!.value, "error", "name", errorText(error)));
  }
}

/** Looks at the version that the plugins are called with, also where a list offers several versions. */
function checkVersion(document: JsonNode, report: Reporter): void {
  const stated = stringAt(document, "cniVersion"), plugins = entryOf(document, "plugins");
  const offered = plugins && entryOf(document, "cniVersions");
  const version = offered === undefined
    ? stated
    : nameAndVersion(document.value as Record<string, unknown>).cniVersion;
  if (plugins !== undefined && stated === undefined && (version === undefined || version === "")) {
    const remarked = offered === undefined
      ? remark(document, "warning", "cniVersion", "is missing, and 0.1.0 is meant")
      : remark(offered.value, "warning", "cniVersions", "has no version that this program knows, and 0.1.0 is meant");
    report(remarked);
  }
  if (version === undefined || version === "" || KNOWN_VERSIONS.includes(version)) return;
  let isNewer = false;
  try {
    isNewer = compareVersions(version, CURRENT_VERSION) > 0;
  } catch {
    // The text is not a version at all.
  }
  const message = isNewer
    ? `${version} is newer than ${CURRENT_VERSION}, the newest this program speaks`
    : `"${version}" is none of the versions there are: ${KNOWN_VERSIONS.join(", ")}`;
  const key = version === stated ? "cniVersion" : "cniVersions";
  report(remark(entryOf(document, key)!.value, "error", key, message));
}

/** Finds what the keys do not show, for example a list without plugins. */
function checkByLoading(file: string, document: JsonNode, report: Reporter): void {
  try {
    const network = hasEnding(file, NETWORK_ENDINGS) ? readNetwork(file) : undefined;
    if (network !== undefined) reportCaveats(network, document, report);
  } catch (error) {
    report(remark(document, "error", "", errorText(error)));
  }
}

function reportCaveats(network: Network, document: JsonNode, report: Reporter): void {
  const isList = entryOf(document, "plugins") !== undefined;
  caveatsOf(network, undefined).forEach((caveats, index) => {
    for (const { key, text, isRefused } of caveats) {
      const path = isList ? keyPath(`plugins[${index}]`, key) : key;
      report(remark(nodeAt(document, path), isRefused ? "error" : "warning", path, text));
    }
  });
}

interface PluginContext extends PluginInFile {
  pluginPath: string;
  /** The list that has the plugin. */
  network?: unknown;
}

function checkPlugin(node: JsonNode, context: PluginContext): void {
  if (!isObject(node.value)) return;
  const { path, report, network } = context;
  const type = stringAt(node, "type"), ipam = entryOf(node, "ipam")?.value;
  const ipamType = (ipam && stringAt(ipam, "type")) ?? "";
  if (type === undefined) {
    report(remark(node, "error", keyPath(path, "type"), "is missing"));
    return;
  }
  const isOurs = checkType(node, type, { ...context, path: keyPath(path, "type") });
  const isIpamOurs = ipam !== undefined && ipamType !== "" &&
    checkType(ipam, ipamType, { ...context, path: keyPath(path, "ipam.type") });
  const schema = isOurs ? pluginSchema(type, isIpamOurs || ipamType === "" ? ipamType : "?") : undefined;
  if (schema === undefined) {
    const ipamOnly = isIpamOurs ? ipamSchema(ipamType) : undefined;
    if (ipamOnly !== undefined) checkSchema(ipam!, ipamOnly, keyPath(path, "ipam"), report);
    return;
  }
  const bySchema: Remark[] = [];
  checkSchema(node, schema, path, (remark) => bySchema.push(remark));
  bySchema.forEach(report);
  checkCapabilities(node, schema, type, context);
  const nameless = Object.hasOwn(node.value, "name") ? {} : { name: "network" };
  const config = { ...node.value, ...nameless, ...isObject(network) ? nameAndVersion(network) : {} };
  const byPlugin = (remark: Remark) => {
    const isSaid = remark.severity === "error"
      ? bySchema.some(({ key, severity }) => key === remark.key && severity === "error")
      : bySchema.some(({ meant }) => meant !== undefined);
    if (!isSaid) report(remark);
  };
  const place = { ...context, report: byPlugin };
  checkByPlugin(type, config, node, place, bySchema);
  if (isIpamOurs) checkByPlugin(ipamType, config, node, { ...place, isFirst: false }, bySchema, "ipam");
}

/** Returns whether the plugin is ours: then its keys are known. */
function checkType(node: JsonNode, type: string, { path, pluginPath, report }: PluginContext): boolean {
  if (type.includes("/")) {
    const message = `${
      JSON.stringify(type)
    } is a path: it must be a name, which is looked up in the plugin directories`;
    report(remark(entryOf(node, "type")!.value, "error", path, message));
    return false;
  }
  try {
    return "own" in findPlugin(type, pluginPath);
  } catch (error) {
    if (pluginPath !== "" && pluginNamed(type) !== undefined) return true;
    const meant = closestKey(type, pluginNames);
    const severity = pluginPath !== "" ? "error" : meant !== undefined ? "warning" : "note";
    const message = pluginPath === "" ? `${JSON.stringify(type)} is no plugin of this program` : errorText(error);
    report(remark(entryOf(node, "type")!.at, severity, path, message, meant));
    return false;
  }
}

function checkCapabilities(node: JsonNode, schema: Schema, type: string, { path, report }: PluginContext): void {
  const used = schema.properties?.["runtimeConfig"];
  if (used?.additionalProperties === true || delegates(schema)) return;
  const known = Object.keys(used?.properties ?? {}), wellKnown = wellKnownCapabilities();
  for (const { key, at, value } of entryOf(node, "capabilities")?.value.entries ?? []) {
    if (value.value !== true || known.includes(key)) continue;
    const meant = wellKnown.includes(key) ? undefined : closestKey(key, [...known, ...wellKnown]);
    const message = `is no capability that ${type} uses`;
    report(remark(at, "warning", keyPath(path, `capabilities.${key}`), message, meant));
  }
}
