/** `patchbay lint`: configuration files by the schemas, and by what the plugins themselves refuse. */
import { CniError, errorText } from "../../cni/error.ts";
import { foldKey, isObject } from "../../cni/json.ts";
import { compareVersions, CURRENT_VERSION, KNOWN_VERSIONS } from "../../cni/versions.ts";
import { findPlugin } from "../../engine/delegation/find-plugin.ts";
import { readTextFile } from "../../ffi/files.ts";
import { loadPlugin, pluginNames } from "../../plugins/table.ts";
import { folderPaths, networkPaths, readAnyNetwork } from "../conf.ts";
import { listNetworkFiles } from "../network-files.ts";
import { type Entry, lineAndColumn, type Node, parse, SyntaxProblem } from "./document.ts";
import { judge, meantBy, type Remark, type Report, type Severity } from "./judge.ts";
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

/** Everything that is configured in the directory. */
export function lintDirectory(directory: string, pluginPath: string): Finding[] {
  const findings = networkPaths(directory).flatMap((path) => lintNetwork(path, pluginPath));
  for (const { path, network, hiddenBy } of listNetworkFiles(directory)) {
    if (hiddenBy === undefined || network === undefined) continue;
    const message = `network "${network.name}" cannot be reached: ${hiddenBy} comes first, and ` +
      (findings.some(({ file, severity }) => file === hiddenBy && severity === "error")
        ? "cannot be read"
        : "has the same name");
    findings.push({ file: path, line: 1, column: 1, severity: "error", key: "name", message });
  }
  return findings;
}

/** A network's file, and those of its plugins in a folder of its name. */
export function lintNetwork(path: string, pluginPath: string): Finding[] {
  return [path, ...folderPaths(path)].flatMap((file) => lintFile(file, pluginPath));
}

export function lintFile(file: string, pluginPath: string): Finding[] {
  const text = readTextFile(file);
  if (text === undefined) throw new Error(`${file}: no such file`);
  const remarks: Remark[] = [];
  const report: Report = (remark) => remarks.push(remark);
  try {
    const document = parse(text);
    judgeDocument(document, pluginPath, report);
    if (!remarks.some(({ severity }) => severity === "error")) askLoader(file, document, report);
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    report({ start: error.offset, end: error.offset, severity: "error", key: "", message: error.message });
  }
  return remarks.sort((one, other) => one.start - other.start).map(({ start, end: _, ...remark }) => ({
    file,
    ...lineAndColumn(text, start),
    ...remark,
  }));
}

function judgeDocument(document: Node, pluginPath: string, report: Report): void {
  if (!isObject(document.value)) {
    report({ ...document, severity: "error", key: "", message: "must be an object" });
    return;
  }
  judgeVersion(document, report);
  const plugins = entryOf(document, "plugins");
  if (plugins === undefined && entryOf(document, "type") !== undefined) {
    judgePlugin(document, { path: "", pluginPath, report });
    return;
  }
  judge(document, withPlugins(listSchema()), "", report);
  plugins?.value.items?.forEach((plugin, index) =>
    judgePlugin(plugin, { path: `plugins[${index}]`, pluginPath, report, network: document.value })
  );
}

/** The plugins are judged one by one, each by its own schema. */
function withPlugins(schema: Schema): Schema {
  const plugins: Schema = { type: "array", items: { type: "object" } };
  return { ...schema, properties: { ...schema.properties, plugins }, required: ["name"] };
}

interface PluginPlace {
  path: string;
  pluginPath: string;
  report: Report;
  /** The list it stands in. */
  network?: unknown;
}

function judgePlugin(node: Node, at: PluginPlace): void {
  if (!isObject(node.value)) return;
  const { path, report, network } = at;
  const type = textOf(node, "type"), ipam = entryOf(node, "ipam")?.value;
  const ipamType = (ipam && textOf(ipam, "type")) ?? "";
  if (type === undefined) {
    report({ ...node, severity: "error", key: inside(path, "type"), message: "is missing" });
    return;
  }
  const isOurs = judgeType(node, type, { ...at, path: inside(path, "type") });
  const isIpamOurs = ipam !== undefined && ipamType !== "" &&
    judgeType(ipam, ipamType, { ...at, path: inside(path, "ipam.type") });
  const schema = isOurs ? pluginSchema(type, isIpamOurs || ipamType === "" ? ipamType : "?") : undefined;
  if (schema === undefined) {
    const ofIpam = isIpamOurs ? ipamSchema(ipamType) : undefined;
    if (ofIpam !== undefined) judge(ipam!, ofIpam, inside(path, "ipam"), report);
    return;
  }
  const before: Remark[] = [];
  judge(node, schema, path, (remark) => before.push(remark));
  before.forEach(report);
  judgeCapabilities(node, schema, type, at);
  const whole = { name: "network", ...isObject(network) ? pick(network) : {}, ...node.value };
  for (const name of isIpamOurs ? [type, ipamType] : [type]) {
    askPlugin(name, whole, node, path, (remark) => {
      if (!before.some(({ key, severity }) => key === remark.key && severity === "error")) report(remark);
    });
  }
}

/** Whether the plugin's keys are known here: it is in this program, and no program of another make has its name. */
function judgeType(node: Node, type: string, { path, pluginPath, report }: PluginPlace): boolean {
  try {
    return "own" in findPlugin(type, pluginPath);
  } catch (error) {
    if (pluginPath !== "" && pluginNames.includes(type)) return true;
    const meant = meantBy(type, pluginNames), { at } = entryOf(node, "type")!;
    const severity = pluginPath !== "" ? "error" : meant !== undefined ? "warning" : "note";
    const message = pluginPath === "" ? `${JSON.stringify(type)} is no plugin of this program` : errorText(error);
    report({ ...at, severity, key: path, message, ...meant !== undefined && { meant } });
    return false;
  }
}

function judgeCapabilities(node: Node, schema: Schema, type: string, { path, report }: PluginPlace): void {
  const used = schema.properties?.["runtimeConfig"];
  if (used?.additionalProperties === true || delegates(schema)) return;
  const known = Object.keys(used?.properties ?? {});
  for (const { key, at, value } of entryOf(node, "capabilities")?.value.entries ?? []) {
    if (value.value !== true || known.includes(key)) continue;
    const isOthers = wellKnownCapabilities().includes(key);
    const meant = isOthers ? undefined : meantBy(key, [...known, ...wellKnownCapabilities()]);
    const message = `is no capability that ${type} uses`;
    const about = { ...at, key: inside(path, `capabilities.${key}`), message };
    report({ ...about, severity: "warning", ...meant !== undefined && { meant } });
  }
}

/** What a plugin refuses beyond the schemas: addresses that are none, for example. */
function askPlugin(type: string, config: Record<string, unknown>, node: Node, path: string, report: Report): void {
  try {
    loadPlugin(type)?.validate(config);
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    const [, key = "", message] = /^[^"]*"([^"]*)":? ([^]*)$/.exec(error.message) ?? [];
    if (message === undefined) report({ ...node, severity: "error", key: path, message: errorText(error) });
    else report({ ...nodeAt(node, key), severity: "error", key: inside(path, key), message });
  }
}

function judgeVersion(document: Node, report: Report): void {
  const version = textOf(document, "cniVersion"), key = "cniVersion";
  if (version === undefined && entryOf(document, "plugins") !== undefined) {
    report({ ...document, severity: "warning", key, message: "is missing, and 0.1.0 is meant" });
  }
  if (version === undefined || version === "" || KNOWN_VERSIONS.includes(version)) return;
  let isNewer = false;
  try {
    isNewer = compareVersions(version, CURRENT_VERSION) > 0;
  } catch {
    // No version at all.
  }
  const message = isNewer
    ? `${version} is newer than ${CURRENT_VERSION}, the newest this program speaks`
    : `"${version}" is none of the versions there are: ${KNOWN_VERSIONS.join(", ")}`;
  report({ ...entryOf(document, key)!.value, severity: "error", key, message });
}

/** What the keys do not show: a list without plugins, for example. */
function askLoader(file: string, document: Node, report: Report): void {
  try {
    if (/\.(conflist|conf|json)$/.test(file)) readAnyNetwork(file);
  } catch (error) {
    report({ ...document, severity: "error", key: "", message: errorText(error) });
  }
}

function entryOf(node: Node, key: string): Entry | undefined {
  return node.entries?.findLast((entry) => foldKey(entry.key) === foldKey(key));
}

function textOf(node: Node, key: string): string | undefined {
  const value = entryOf(node, key)?.value.value;
  return typeof value === "string" ? value : undefined;
}

/** By a path as messages have it, `ipam.ranges[0][0].subnet`; what is around it when it is not there. */
function nodeAt(node: Node, path: string): Node {
  let found = node;
  for (const [, name, index] of path.matchAll(/([^.[\]]+)|\[([0-9]+)\]/g)) {
    const next = index === undefined ? entryOf(found, name!)?.value : found.items?.[Number(index)];
    if (next === undefined) break;
    found = next;
  }
  return found;
}

function inside(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function pick(network: Record<string, unknown>): Record<string, unknown> {
  const { name, cniVersion } = network;
  return { ...typeof name === "string" && { name }, ...typeof cniVersion === "string" && { cniVersion } };
}
