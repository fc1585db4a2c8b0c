/** All networks of a configuration directory, and what would keep an ADD to each from working: `patchbay networks`. */
import { errorText } from "../cni/error.ts";
import { asRead, asWritten, field, isObject } from "../cni/json.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { requirePrevResult } from "../engine/judging.ts";
import { openSession } from "../engine/run.ts";
import { requireVersion } from "../engine/verb-call.ts";
import { loadPlugin } from "../plugins/table.ts";
import { listNetworkFiles, type NetworkFile } from "./conf/directory.ts";
import { examined } from "./conf/load.ts";
import type { Network, NetworkPlugin } from "./conf/network.ts";
import { claimantsIn, overlappingRoutes, overlapsWith } from "./overlaps.ts";
import { checkNames, type Runtime } from "./plugin-call.ts";
import { pluginConfig } from "./plugin-config.ts";
import { knownAttachments } from "./records.ts";
import type { NetworkSummary, Pool } from "../contract/shown.ts";

export function summarizeNetworks(runtime: Runtime): NetworkSummary[] {
  const files = listNetworkFiles(runtime.configDirectory), claimants = claimantsIn(files);
  // All before the first plugin is called.
  for (const { network } of files) if (network !== undefined) examined(network, runtime);
  return files.map((file) => {
    const own = claimants.find(({ path }) => path === file.path);
    const warnings = own === undefined ? [] : [...overlapsWith(own, claimants), ...overlappingRoutes(own)];
    return { ...summarize(file, runtime), warnings };
  });
}

function summarize(
  { path, network, problem, hiddenBy }: NetworkFile,
  runtime: Runtime,
): Omit<NetworkSummary, "warnings"> {
  if (network === undefined) {
    const hides = `${problem}; networks in files after it are not found`;
    return { file: path, plugins: [], pools: [], problems: [hides] };
  }
  const { name, cniVersion } = network;
  const hidden = hiddenBy === undefined ? [] : [`not found by its name: ${hiddenBy} is in the way`];
  const plugins = network.plugins.map((plugin) => examinePlugin(network, plugin, runtime.pluginPath));
  const misnamed = problemsOf(() => checkNames(network, undefined));
  return {
    file: path,
    name,
    cniVersion,
    plugins: network.plugins.map(({ type, config }) => ipamType(config) ? `${type}+${ipamType(config)}` : type),
    pools: plugins.flatMap(({ pools }) => pools),
    problems: [
      ...hidden,
      ...misnamed,
      ...plugins.flatMap(({ problems }) => problems),
      ...absentDevices(network, runtime),
    ],
  };
}

/** Unless something is attached, which may have the device. */
function absentDevices(network: Network, runtime: Runtime): string[] {
  const absent = network.plugins.flatMap((plugin) => absentDevice(network, plugin, runtime.pluginPath) ?? []);
  if (absent.length === 0) return [];
  return knownAttachments(runtime).some((one) => one.network === network.name) ? [] : absent;
}

function absentDevice(network: Network, plugin: NetworkPlugin, path: string): string | undefined {
  try {
    const found = findPlugin(plugin.type, path);
    if (!("own" in found) || found.own.absentDevice === undefined) return undefined;
    const { own } = found, call = statusCall(network, plugin, path), conf = own.validate(call.document);
    return openSession().withHost(call, true, (host) => own.absentDevice!(conf, host));
  } catch {
    // STATUS has said why.
    return undefined;
  }
}

function statusCall(network: Network, plugin: NetworkPlugin, path: string) {
  const noAttachment = { containerId: "", netnsPath: "", ifName: "", cniArgs: "" };
  return { ...noAttachment, path, ...asWritten(pluginConfig(network, plugin, {})), command: "STATUS" as const };
}

export function poolsOfNetwork(network: Network): Pool[] {
  return network.plugins.flatMap((plugin) => poolsOf(plugin.type, asRead(pluginConfig(network, plugin, {}))));
}

function problemsOf(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    return [errorText(error)];
  }
}

/** What would keep an ADD from working now, except for its address pools. */
export function networkProblems(network: Network, pluginPath: string): string[] {
  return network.plugins.flatMap((plugin) => examinePlugin(network, plugin, pluginPath).problems);
}

type Examined = Pick<NetworkSummary, "pools" | "problems">;

/** Runs STATUS of our plugins. Of other plugins it only checks that they exist. */
function examinePlugin(network: Network, plugin: NetworkPlugin, path: string): Examined {
  const problems: string[] = [];
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      const text = errorText(error);
      if (!problems.includes(text)) problems.push(text);
      return undefined;
    }
  };
  const found = attempt(() => findPlugin(plugin.type, path));
  const call = statusCall(network, plugin, path);
  const type = ipamType(plugin.config);
  const ipam = type === "" ? undefined : attempt(() => findPlugin(type, path));
  if (found !== undefined && "own" in found) {
    attempt(() => requireVersion(found.own, call.document, "ADD"));
    if (plugin === network.plugins[0]) attempt(() => requirePrevResult(found.own, () => undefined));
    attempt(() => openSession({ inEveryVersion: true }).runVerb(found.own, call));
  }
  return { pools: ipam !== undefined && "own" in ipam ? poolsOf(plugin.type, call.document) : [], problems };
}

/** "" without an IPAM plugin. */
function ipamType(config: Readonly<Record<string, unknown>>): string {
  const ipam = field(config, "ipam"), type = isObject(ipam) ? field(ipam, "type") : undefined;
  return typeof type === "string" ? type : "";
}

/** The pools of a plugin and of its delegates; none for foreign plugins and for a configuration that STATUS rejects. */
function poolsOf(type: string, document: unknown): Pool[] {
  try {
    const plugin = loadPlugin(type), conf = plugin?.validate(document);
    if (plugin?.pools !== undefined) return plugin.pools(conf!);
    const other = plugin?.passedOn?.(conf!);
    if (other !== undefined) return poolsOf(other.type, other.conf);
    const ipam = isObject(document) ? field(document, "ipam") : undefined;
    const ipamType = isObject(ipam) ? field(ipam, "type") : undefined;
    return typeof ipamType === "string" && ipamType !== type ? poolsOf(ipamType, document) : [];
  } catch {
    return [];
  }
}
