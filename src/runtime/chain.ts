/**
 * Whole networks: ADD, CHECK, DEL and STATUS (GC: gc.ts) of every plugin in a list (CNI spec 1.1.0, "Section 3: Execution of
 * Network Configurations").
 *
 * A plugin found to be this same binary runs in this process, any other by exec. Order, texts and what the cache is
 * asked for are libcni's, save that an ADD that fails takes away what it began, and that DEL goes on past a plugin
 * that fails.
 */
import { CniError, errorText, INTERNAL } from "../cni/error.ts";
import { asWritten } from "../cni/json.ts";
import { checkContainerId, checkIfName, checkNetworkName, type Command } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import {
  convertResult,
  newestResult,
  parsePluginResult,
  readPluginResult,
  resultDocument,
  type VersionedResult,
} from "../cni/result-versions.ts";
import { compareVersions, CURRENT_VERSION } from "../cni/versions.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import type { Plan } from "../engine/operator/plan.ts";
import { openSession } from "../engine/run.ts";
import type { Session } from "../engine/session.ts";
import { warn, withoutRepeating } from "../ffi/warn.ts";
import { type Cached, readCache, removeCache, writeCache } from "./cache.ts";
import type { Network, NetworkPlugin } from "./conf/network.ts";
import { withContainerLocked } from "./lock.ts";
import { type Derived, pluginConfig } from "./plugin-config.ts";

export interface Runtime {
  /** CNI_PATH; empty for the plugins in this program and no others. */
  readonly pluginPath: string;
  readonly cacheDirectory: string;
}

export interface AttachmentRequest {
  readonly containerId: string;
  readonly netnsPath: string;
  readonly ifName: string;
  readonly cniArgs: readonly (readonly [key: string, value: string])[];
  readonly capabilityArgs: Readonly<Record<string, unknown>>;
}

/** Answers the last plugin's result as that plugin wrote it; undefined for a network without plugins. */
export function addNetwork(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
): VersionedResult | undefined {
  return withContainerLocked(runtime.cacheDirectory, request.containerId, () => {
    const key = { network: network.name, ...request };
    // What is attached already must survive a second ADD, which can only fail.
    const wasAttached = readCache(runtime.cacheDirectory, key).state === "present";
    const begun: NetworkPlugin[] = [];
    let result: VersionedResult | undefined;
    try {
      inSession((session) => {
        for (const plugin of network.plugins) {
          failing(plugin, "add", () => {
            const run = findRunnable(runtime, network, plugin, { request, session });
            begun.push(plugin);
            result = run("ADD", { prevResult: written(result), capabilityArgs: request.capabilityArgs });
          });
        }
      });
      try {
        writeCache(runtime.cacheDirectory, { ...key, config: network.source, result: written(result) });
      } catch (error) {
        throw wrapped(`failed to set network "${network.name}" cached result`, error);
      }
      return result;
    } catch (error) {
      if (wasAttached) throw error;
      throw undone(error, network, () => deletePlugins(runtime, network, begun, request, result));
    }
  });
}

export function checkNetwork(runtime: Runtime, network: Network, request: AttachmentRequest): void {
  if (compareVersions(network.cniVersion, "0.4.0") < 0) {
    throw new CniError(
      INTERNAL,
      `configuration version "${network.cniVersion}" does not support the CHECK command`,
    );
  }
  if (network.disableCheck) return;
  withContainerLocked(runtime.cacheDirectory, request.containerId, () => {
    let prevResult: VersionedResult | undefined;
    try {
      prevResult = cachedResult(readCache(runtime.cacheDirectory, keyOf(network, request)), network.cniVersion);
    } catch (error) {
      throw wrapped(`failed to get network "${network.name}" cached result`, error);
    }
    const derived = { prevResult: written(prevResult), capabilityArgs: request.capabilityArgs };
    inSession((session) => {
      for (const plugin of network.plugins) {
        findRunnable(runtime, network, plugin, { request, session })("CHECK", derived);
      }
    });
  });
}

/** Tries every plugin. What failed is told in one error, and the cache record stays for the next try. */
export function deleteNetwork(runtime: Runtime, network: Network, request: AttachmentRequest): void {
  withContainerLocked(runtime.cacheDirectory, request.containerId, () => deleteUnlocked(runtime, network, request));
}

/** For a caller that holds the lock. */
export function deleteUnlocked(runtime: Runtime, network: Network, request: AttachmentRequest): void {
  const key = keyOf(network, request);
  let prevResult: VersionedResult | undefined;
  if (passesPrevResultToDel(network)) {
    try {
      prevResult = cachedResult(readCache(runtime.cacheDirectory, key), network.cniVersion);
    } catch (error) {
      warn(`DEL goes on without the cached result: ${errorText(error)}`);
      removeCache(runtime.cacheDirectory, key);
    }
  }
  const failures = deletePlugins(runtime, network, network.plugins, request, prevResult);
  if (failures.length > 0) throw joined(failures);
  removeCache(runtime.cacheDirectory, key);
}

function deletePlugins(
  runtime: Runtime,
  network: Network,
  plugins: readonly NetworkPlugin[],
  request: AttachmentRequest,
  prevResult: VersionedResult | undefined,
): CniError[] {
  const derived = {
    prevResult: passesPrevResultToDel(network) ? written(prevResult) : undefined,
    capabilityArgs: request.capabilityArgs,
  };
  return inSession((session) =>
    collecting(plugins.toReversed(), (plugin) => {
      failing(plugin, "delete", () => findRunnable(runtime, network, plugin, { request, session })("DEL", derived));
    })
  );
}

/** The error of ADD, after a DEL whose failures are warnings; one that is the same is only mentioned. */
function undone(error: unknown, { name }: Network, deleteBegun: () => CniError[]): unknown {
  const reason = errorText((error as Error).cause ?? error);
  let isRepeated = false;
  for (const failure of withoutRepeating(reason, deleteBegun)) {
    const text = errorText(failure);
    if (text.endsWith(reason)) isRepeated = true;
    else warn(`after the failed ADD of network "${name}": ${text}`);
  }
  if (!isRepeated || !(error instanceof CniError)) return error;
  const { code, message, details } = error, likewise = "DEL after it failed for the same reason";
  return new CniError(code, message, details === "" ? likewise : `${details}; ${likewise}`, { cause: error.cause });
}

function passesPrevResultToDel(network: Network): boolean {
  return compareVersions(network.cniVersion, "0.4.0") >= 0;
}

export interface PlannedPlugin {
  type: string;
  /** Undefined for a plugin of another make, of which nobody knows what it would do. */
  resources: Plan["resources"] | undefined;
  /** Why ADD would fail here and now. */
  obstacles: Plan["obstacles"];
}

/** What ADD would make, with nothing made. */
export function planNetwork(runtime: Runtime, network: Network, request: AttachmentRequest): PlannedPlugin[] {
  const { planAdd } = require("../engine/operator/plan.ts") as typeof import("../engine/operator/plan.ts");
  let result: VersionedResult | undefined;
  return inSession((session) =>
    network.plugins.map((plugin) =>
      failing(plugin, "plan", () => {
        const { type } = plugin;
        const found = findPlugin(type, runtime.pluginPath);
        if (!("own" in found)) return { type, resources: undefined, obstacles: [] };
        const derived = { prevResult: written(result), capabilityArgs: request.capabilityArgs };
        const call = { ...invocationOf(runtime, network, plugin, derived, request), command: "ADD" as const };
        const plan = planAdd(found.own, call, result && newestResult(result), session);
        result = versioned(plan.result, network.cniVersion);
        return { type, resources: plan.resources, obstacles: plan.obstacles };
      })
    )
  );
}

/** Throws the first plugin's error with the code it gave; networks older than the verb are always ready. */
export function networkStatus(runtime: Runtime, network: Network): void {
  if (!knowsStatus(network.cniVersion)) return;
  for (const plugin of network.plugins) findRunnable(runtime, network, plugin)("STATUS", {});
}

function knowsStatus(version: string): boolean {
  try {
    return compareVersions(version, "1.1.0") >= 0;
  } catch {
    return false;
  }
}

function keyOf(network: Network, { containerId, ifName }: AttachmentRequest) {
  return { network: network.name, containerId, ifName };
}

/** What ADD answered, in the network's version of today. Throws when it cannot be read as a result. */
function cachedResult(cached: Cached, version: string): VersionedResult | undefined {
  let result: VersionedResult;
  if (cached.state === "legacy") result = parsePluginResult(cached.text, "");
  else if (cached.state === "present" && cached.record.result !== undefined) {
    result = readPluginResult(cached.record.result, "");
  } else return undefined;
  try {
    return convertResult(result, version);
  } catch (error) {
    throw wrapped(`failed to convert cached result to config version "${version}"`, error);
  }
}

/** The result as it is written down, for other plugins and for the cache. */
function written(result: VersionedResult | undefined): Record<string, unknown> | undefined {
  return result && resultDocument(result);
}

/** Runs one verb; answers ADD's result. */
type Runnable = (command: Command, derived: Derived) => VersionedResult | undefined;

/** Runs `work` with a session in which what the first plugin opens serves the next ones too. */
function inSession<T>(work: (session: Session) => T): T {
  const session = openSession({ keepsOpen: true });
  try {
    return work(session);
  } finally {
    session.close();
  }
}

/** Finds the plugin and checks the identifiers. Without a request, verbs are about the network as a whole. */
export function findRunnable(
  runtime: Runtime,
  network: Network,
  plugin: NetworkPlugin,
  { request, session }: { request?: AttachmentRequest; session?: Session } = {},
): Runnable {
  const found = findPlugin(plugin.type, runtime.pluginPath);
  if (request !== undefined) checkContainerId(request.containerId);
  checkNetworkName(network.name);
  if (request !== undefined) checkIfName(request.ifName);
  return (command, derived) => {
    const invocation = { ...invocationOf(runtime, network, plugin, derived, request), command };
    if ("own" in found) {
      const result = (session ?? openSession({ inEveryVersion: true })).runVerb(found.own, invocation);
      return result && versioned(result, network.cniVersion);
    }
    const { runForeignPlugin } = require(
      "../engine/delegation/foreign-plugin.ts",
    ) as typeof import("../engine/delegation/foreign-plugin.ts");
    const stdout = runForeignPlugin(found.path, invocation);
    return command === "ADD" ? parsePluginResult(stdout, network.cniVersion) : undefined;
  };
}

function invocationOf(
  runtime: Runtime,
  network: Network,
  plugin: NetworkPlugin,
  derived: Derived,
  request?: AttachmentRequest,
) {
  return {
    containerId: request?.containerId ?? "",
    netnsPath: request?.netnsPath ?? "",
    ifName: request?.ifName ?? "",
    cniArgs: joinArgs(request?.cniArgs ?? []),
    path: runtime.pluginPath,
    ...asWritten(pluginConfig(network, plugin, derived)),
  };
}

export function joinArgs(pairs: AttachmentRequest["cniArgs"]): string {
  let text = "";
  for (const [key, value] of pairs) text += `${text === "" ? "" : ";"}${key}=${value}`;
  return text;
}

function versioned(result: Result, version: string): VersionedResult {
  return convertResult({ family: "1.0", result: { ...result, cniVersion: CURRENT_VERSION } }, version);
}

/** Runs `work`, naming the plugin and the operation in what it throws. */
function failing<T>(plugin: NetworkPlugin, operation: "add" | "delete" | "plan", work: () => T): T {
  try {
    return work();
  } catch (error) {
    const name = plugin.name === "" ? "" : ` name="${plugin.name}"`;
    throw wrapped(`plugin type="${plugin.type}"${name} failed (${operation})`, error);
  }
}

/** Runs `work` on each item and answers what it threw. */
export function collecting<Item>(items: readonly Item[], work: (item: Item) => void): CniError[] {
  const failures: CniError[] = [];
  for (const item of items) {
    try {
      work(item);
    } catch (error) {
      failures.push(
        error instanceof CniError ? error : new CniError(INTERNAL, errorText(error), "", { cause: error }),
      );
    }
  }
  return failures;
}

export function wrapped(subject: string, error: unknown): CniError {
  const code = error instanceof CniError ? error.code : INTERNAL;
  return new CniError(code, `${subject}: ${errorText(error)}`, "", { cause: error });
}

export function joined(failures: readonly CniError[]): CniError {
  if (failures.length === 1) return failures[0]!;
  return new CniError(failures[0]!.code, failures.map(errorText).join("\n"), "", { cause: failures[0] });
}
