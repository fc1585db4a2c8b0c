/**
 * Whole networks: ADD, CHECK, DEL and STATUS of every plugin in a list (CNI spec 1.1.0, "Section 3: Execution of Network
 * Configurations"). GC is in gc.ts.
 *
 * Order, texts and use of the cache are libcni's, with two differences: an ADD that fails takes back what it began, and
 * DEL goes on past a plugin that fails.
 */
import { CniError, errorText, INTERNAL } from "../cni/error.ts";
import { convertResult, parsePluginResult, readPluginResult, type VersionedResult } from "../cni/result-versions.ts";
import { compareVersions } from "../cni/versions.ts";
import { collectFailures, Differences, followedBy, throwJoined } from "../contract/failures.ts";
import { requirePrevResult } from "../engine/judging.ts";
import type { LedgerRecord } from "../engine/ledger/record.ts";
import { ignoreInterruptions, throwIfInterrupted } from "../process/interruption.ts";
import { warn, withoutRepeating } from "../process/warn.ts";
import { type Cached, readCache, refuseUntrustedCache, removeCache, requireCache, writeCache } from "./cache.ts";
import type { Network, NetworkPlugin } from "./conf/network.ts";
import { refuseIfLeft } from "../process/calls.ts";
import { withContainerLocked } from "./lock.ts";
import {
  type AttachmentRequest,
  documentOf,
  inSession,
  namingPlugin,
  prepareCall,
  type Runtime,
  verbOfNetwork,
  wrapped,
} from "./plugin-call.ts";

/** Returns the last plugin's result in the network's version; undefined for a network without plugins. */
export function addNetwork(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
): VersionedResult | undefined {
  return withContainerLocked(runtime, request.containerId, () => addUnlocked(runtime, network, request));
}

/** For a caller that holds the lock. */
export function addUnlocked(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
): VersionedResult | undefined {
  const key = { network: network.name, ...request };
  refuseUntrustedCache(runtime.cacheDirectory);
  // What is attached already must survive a second ADD, which can only fail.
  const wasAttached = readCache(runtime.cacheDirectory, key).state === "present";
  const begun: NetworkPlugin[] = [];
  let result: VersionedResult | undefined, running: NetworkPlugin | undefined;
  try {
    inSession((session) => {
      for (const plugin of network.plugins) {
        throwIfInterrupted();
        namingPlugin(plugin, "add", () => {
          const run = prepareCall(runtime, network, plugin, { request, session });
          begun.push(running = plugin);
          const derived = { prevResult: documentOf(result), capabilityArgs: request.capabilityArgs };
          result = run("ADD", derived, () => running = undefined);
        });
      }
    });
    try {
      writeCache(runtime.cacheDirectory, { ...key, config: network.source, result: documentOf(result) });
    } catch (error) {
      throw wrapped(`failed to set network "${network.name}" cached result`, error);
    }
    return result;
  } catch (error) {
    ignoreInterruptions();
    if (wasAttached) throw error;
    const takesBack = { failed: onlyOneOf(begun, running) };
    throw undone(error, () => deletePlugins(runtime, network, begun, request, result, { takesBack }));
  }
}

export function checkNetwork(runtime: Runtime, network: Network, request: AttachmentRequest): void {
  checkEach(runtime, network, request, {}, (_, check) => check());
}

/** What one plugin's CHECK found, one line for each. */
export interface PluginDifferences {
  type: string;
  lines: readonly string[];
  /** The error that is the line, where the plugin could not look. */
  failure?: unknown;
}

/**
 * For operators: goes on past a plugin that fails, and our own plugins also tell what is in the way. What several of them
 * find is told once. Throws when no plugin could look.
 */
export function differencesIn(runtime: Runtime, network: Network, request: AttachmentRequest): PluginDifferences[] {
  const found: PluginDifferences[] = [], seen = new Set<string>(), failures: unknown[] = [];
  checkEach(runtime, network, request, { tellsOperator: true }, ({ type }, check) => {
    const [failure] = collectFailures([check], (run) => run());
    if (failure === undefined) return;
    failures.push(failure);
    const hasLooked = failure instanceof Differences;
    const all = hasLooked ? failure.lines : [errorText(failure).replaceAll("\n", "; ")];
    const lines = all.filter((line) => !seen.has(line));
    for (const line of lines) seen.add(line);
    if (lines.length > 0) found.push({ type, lines, failure: hasLooked ? undefined : failure });
  });
  const isNobodyLooking = failures.length === network.plugins.length && found.length > 0;
  if (isNobodyLooking && !failures.some((one) => one instanceof Differences)) throw failures[0];
  return found;
}

function checkEach(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
  options: Parameters<typeof inSession>[1],
  visit: (plugin: NetworkPlugin, check: () => void) => void,
): void {
  if (compareVersions(network.cniVersion, "0.4.0") < 0) {
    throw new CniError(
      INTERNAL,
      `configuration version "${network.cniVersion}" does not support the CHECK command`,
    );
  }
  if (network.disableCheck) return;
  withContainerLocked(runtime, request.containerId, () => {
    let prevResult: VersionedResult | undefined;
    try {
      prevResult = cachedResult(readCache(runtime.cacheDirectory, keyOf(network, request)), network.cniVersion);
    } catch (error) {
      throw wrapped(`failed to get network "${network.name}" cached result`, error);
    }
    const derived = { prevResult: documentOf(prevResult), capabilityArgs: request.capabilityArgs };
    inSession((session) => {
      for (const plugin of network.plugins) {
        visit(plugin, () => void prepareCall(runtime, network, plugin, { request, session })("CHECK", derived));
      }
    }, options);
  });
}

/** Tries every plugin. What failed is told in one error, and the cache record stays for the next try. */
export function deleteNetwork(runtime: Runtime, network: Network, request: AttachmentRequest): void {
  withContainerLocked(runtime, request.containerId, () => deleteUnlocked(runtime, network, request));
}

/** For a caller that holds the lock. `gone` is SessionOptions.gone. */
export function deleteUnlocked(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
  gone?: readonly LedgerRecord[],
): void {
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
  const failures = deletePlugins(runtime, network, network.plugins, request, prevResult, { gone });
  throwJoined(failures, "\n");
  refuseIfLeft();
  removeCache(runtime.cacheDirectory, key);
}

function deletePlugins(
  runtime: Runtime,
  network: Network,
  plugins: readonly NetworkPlugin[],
  request: AttachmentRequest,
  prevResult: VersionedResult | undefined,
  options: Parameters<typeof inSession>[1],
): unknown[] {
  const derived = {
    prevResult: passesPrevResultToDel(network) ? documentOf(prevResult) : undefined,
    capabilityArgs: request.capabilityArgs,
  };
  return inSession((session) =>
    collectFailures(plugins.toReversed(), (plugin) => {
      namingPlugin(
        plugin,
        "delete",
        () => prepareCall(runtime, network, plugin, { request, session })("DEL", derived),
      );
    }), options);
}

/** The type of the plugin, when no other has it. */
function onlyOneOf(plugins: readonly NetworkPlugin[], plugin: NetworkPlugin | undefined): string | undefined {
  return plugins.filter(({ type }) => type === plugin?.type).length === 1 ? plugin?.type : undefined;
}

/** The error of ADD with what failed in the DEL that takes it back; a reason is said once. */
function undone(error: unknown, deleteBegun: () => unknown[]): unknown {
  const reason = errorText((error as Error).cause ?? error);
  const lines = withoutRepeating(reason, deleteBegun).map((failure) => {
    const text = errorText(failure);
    return text.endsWith(reason)
      ? "taking it back (DEL) failed for the same reason"
      : `taking it back failed: ${text}`;
  });
  return followedBy(error, lines);
}

function passesPrevResultToDel(network: Network): boolean {
  return compareVersions(network.cniVersion, "0.4.0") >= 0;
}

/** Throws the first plugin's error with the code it gave, and what ADD refuses of the first plugin. */
export function networkStatus(runtime: Runtime, network: Network): void {
  requireCache(runtime.cacheDirectory);
  for (const plugin of network.plugins) {
    const { own, hasVerb } = verbOfNetwork(runtime, network, plugin);
    if (!hasVerb) continue;
    prepareCall(runtime, network, plugin)("STATUS", {});
    if (own !== undefined && plugin === network.plugins[0]) requirePrevResult(own, () => undefined);
  }
}

function keyOf(network: Network, { containerId, ifName }: AttachmentRequest) {
  return { network: network.name, containerId, ifName };
}

/** The result of ADD in the network's version of today. Throws when it cannot be read as a result. */
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
