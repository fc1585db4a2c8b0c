/** Networks, and what would keep an ADD to each from working: `patchbay networks` and `patchbay status`. */
import { distinct } from "../cni/error.ts";
import { asRead, asWritten } from "../cni/json.ts";
import { collectFailures } from "../contract/failures.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { sharedDifferences } from "../engine/operator/shared-parts.ts";
import type { KnownAttachment } from "../engine/operator/known-attachment.ts";
import { requirePrevResult } from "../engine/judging.ts";
import { type ConfiguredPlugin, ipamTypeOf, pluginParts } from "../engine/plugin-parts.ts";
import { openSession } from "../engine/run.ts";
import { requireVersion } from "../engine/verb-call.ts";
import { caveatsHere, fixedAddresses } from "./caveats.ts";
import { requireCache } from "./cache.ts";
import { networkStatus } from "./chain.ts";
import { listNetworkFiles, type NetworkFile } from "./conf/directory.ts";
import type { Network, NetworkPlugin } from "./conf/network.ts";
import { claimantOf, claimantsIn, type ClaimingNetwork, overlappingRoutes, overlapsWith } from "./overlaps.ts";
import { checkNames, type Runtime } from "./plugin-call.ts";
import { pluginConfig } from "./plugin-config.ts";
import { knownAttachments } from "./records.ts";
import { takenAddresses } from "./taken-addresses.ts";
import type { NetworkSummary, Pool } from "../contract/summaries.ts";

/** What is read once for all networks. */
interface Scene {
  runtime: Runtime;
  /** STATUS is asked of all plugins, as engines do, and not of ours alone. */
  asksAll: boolean;
  claimants: readonly ClaimingNetwork[];
  attachments: readonly KnownAttachment[];
}

/** Summarizes the network, or all in the configuration directory. Problems are errors, and lines beside them. */
export function summarizeNetworks(runtime: Runtime, asksAll = false, only?: Network): NetworkSummary<unknown>[] {
  const all = listNetworkFiles(runtime.configDirectory);
  const files = only === undefined ? all : [{ path: only.path ?? "", network: only }];
  const scene = { runtime, asksAll, claimants: claimantsIn(all), attachments: readableAttachments(runtime) };
  return files.map((file) => summarize(file, scene));
}

/** Why they cannot be read, `requireCache` says. */
function readableAttachments(runtime: Runtime): KnownAttachment[] {
  try {
    return knownAttachments(runtime);
  } catch {
    return [];
  }
}

function summarize({ path: file, network, problem, hiddenBy }: NetworkFile, scene: Scene): NetworkSummary<unknown> {
  const none = { plugins: [], pools: [], fixedAddresses: [], differences: [], warnings: [] };
  if (network === undefined) {
    return { ...none, file, state: "broken", problems: [`${problem}; networks in files after it are not found`] };
  }
  const { name, cniVersion } = network, { runtime, claimants } = scene;
  const attachments = scene.attachments.filter((one) => one.network === name);
  const { pools, problems: ofPlugins } = scene.asksAll ? askAll(network, runtime) : askOurs(network, runtime);
  const caveats = caveatsHere(network), own = claimantOf(network, file), fixed = fixedAddresses(network);
  const problems = distinct([
    ...hiddenBy === undefined ? [] : [`not found by its name: ${hiddenBy} is in the way`],
    ...ofPlugins,
    // A container may have the device.
    ...attachments.length > 0 ? [] : absentDevices(network, runtime.pluginPath),
    ...caveats.flatMap(({ refused }) => refused),
  ]);
  const full = fullPools(pools), differences = sharedDifferences(attachments, runtime.pluginPath);
  return {
    file,
    name,
    cniVersion,
    state: problems.length > 0 ? "broken" : full.length > 0 ? "full" : differences.length > 0 ? "differs" : "ok",
    plugins: network.plugins.map(({ type, config }) => ipamTypeOf(config) ? `${type}+${ipamTypeOf(config)}` : type),
    pools,
    fixedAddresses: fixed,
    problems: [...problems, ...full],
    differences,
    warnings: [
      ...overlapsWith(own, claimants),
      ...overlappingRoutes(own),
      ...caveats.flatMap(({ warnings }) => warnings),
      ...takenAddresses(fixed, attachments),
    ],
  };
}

type Examined = Pick<NetworkSummary<unknown>, "pools" | "problems">;

function askAll(network: Network, runtime: Runtime): Examined {
  return {
    pools: poolsOfNetwork(network),
    problems: collectFailures([network], (one) => networkStatus(runtime, one)),
  };
}

/** Asks our plugins. For other plugins it only checks that they exist. */
function askOurs(network: Network, { pluginPath, cacheDirectory }: Runtime): Examined {
  const plugins = network.plugins.map((plugin) => examinePlugin(network, plugin, pluginPath));
  return {
    pools: plugins.flatMap(({ pools }) => pools),
    problems: [
      ...collectFailures([network], (one) => checkNames(one, undefined)),
      ...collectFailures([cacheDirectory], requireCache),
      ...plugins.flatMap(({ problems }) => problems),
    ],
  };
}

/** Why ADD would fail for lack of addresses, in its words. What was never there, STATUS says. */
function fullPools(pools: readonly Pool[]): string[] {
  return pools.filter(isFull).map(({ ranges }) => `no IP addresses available in range set: ${ranges}`);
}

export function isFull({ capacity, free }: Pool): boolean {
  return capacity > 0 && free <= 0;
}

function absentDevices(network: Network, path: string): string[] {
  return network.plugins.flatMap((plugin) => {
    try {
      const found = findPlugin(plugin.type, path);
      if (!("own" in found) || found.own.absentDevice === undefined) return [];
      const { own } = found, call = statusCall(network, plugin, path), conf = own.validate(call.document);
      return openSession().withHost(call, true, (host) => own.absentDevice!(conf, host)) ?? [];
    } catch {
      // STATUS has said why.
      return [];
    }
  });
}

function statusCall(network: Network, plugin: NetworkPlugin, path: string) {
  const noAttachment = { containerId: "", netnsPath: "", ifName: "", cniArgs: "" };
  return { ...noAttachment, path, ...asWritten(pluginConfig(network, plugin, {})), command: "STATUS" as const };
}

export function poolsOfNetwork(network: Network): Pool[] {
  return network.plugins.flatMap((plugin) =>
    poolsOf({ type: plugin.type, document: asRead(pluginConfig(network, plugin, {})) })
  );
}

/** What would keep an ADD from working now, except for its address pools. */
export function networkProblems(network: Network, pluginPath: string): unknown[] {
  return network.plugins.flatMap((plugin) => examinePlugin(network, plugin, pluginPath).problems);
}

/** Runs STATUS of our plugins. For other plugins it only checks that they exist. */
function examinePlugin(network: Network, plugin: NetworkPlugin, path: string): Examined {
  const problems: unknown[] = [];
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      problems.push(error);
      return undefined;
    }
  };
  const found = attempt(() => findPlugin(plugin.type, path));
  const call = statusCall(network, plugin, path);
  const type = ipamTypeOf(plugin.config);
  const ipam = type === "" ? undefined : attempt(() => findPlugin(type, path));
  if (found !== undefined && "own" in found) {
    attempt(() => requireVersion(found.own, call.document, "ADD"));
    if (plugin === network.plugins[0]) attempt(() => requirePrevResult(found.own, () => undefined));
    attempt(() => openSession({ inEveryVersion: true }).runVerb(found.own, call));
  }
  return {
    pools: ipam !== undefined && "own" in ipam ? poolsOf({ type: plugin.type, document: call.document }) : [],
    problems: distinct(problems),
  };
}

/** The pools of a plugin and of what it calls; none for foreign plugins and for a configuration that STATUS rejects. */
function poolsOf(plugin: ConfiguredPlugin): Pool[] {
  try {
    const parts = pluginParts(plugin);
    const isRefused = parts.some(({ plugin, conf }) => plugin !== undefined && conf === undefined);
    return isRefused
      ? []
      : parts.flatMap(({ plugin, conf }) => plugin?.pools?.(conf!).map((pool) => pool.count()) ?? []);
  } catch {
    return [];
  }
}
