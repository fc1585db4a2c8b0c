/**
 * Calls of single plugins by the runtime: in this process when the plugin found is this same binary, by exec when it is
 * another program.
 */
import { CniError, errorText, INTERNAL } from "../cni/error.ts";
import { checkContainerId, checkGivenIfName, checkNetworkName, type Verb } from "../cni/invocation.ts";
import { asWritten } from "../cni/json.ts";
import type { Result } from "../cni/result.ts";
import { convertResult, parsePluginResult, resultDocument, type VersionedResult } from "../cni/result-versions.ts";
import { compareVersions, CURRENT_VERSION } from "../cni/versions.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import { openSession } from "../engine/run.ts";
import type { Session, SessionOptions } from "../engine/session.ts";
import type { Network, NetworkPlugin } from "./conf/network.ts";
import { type Derived, pluginConfig } from "./plugin-config.ts";

export interface Runtime {
  readonly configDirectory: string;
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

/** Runs one verb and returns the result of ADD. `whenDone` is called when the plugin has succeeded; its result may be refused yet. */
type RunVerb = (command: Verb, derived: Derived, whenDone?: () => void) => VersionedResult | undefined;

/** Finds the plugin and checks the identifiers. Without a request, the verbs are about the network as a whole. */
export function prepareCall(
  runtime: Runtime,
  network: Network,
  plugin: NetworkPlugin,
  { request, session }: { request?: AttachmentRequest; session?: Session } = {},
): RunVerb {
  const found = findPlugin(plugin.type, runtime.pluginPath);
  checkNames(network, request);
  return (command, derived, whenDone = () => {}) => {
    const invocation = { ...invocationOf(runtime, network, plugin, derived, request), command };
    if ("own" in found) {
      const result = (session ?? openSession({ inEveryVersion: true })).runVerb(found.own, invocation);
      whenDone();
      return result && inVersion(result, network.cniVersion);
    }
    const { runForeignPlugin } = require(
      "../engine/delegation/foreign-plugin.ts",
    ) as typeof import("../engine/delegation/foreign-plugin.ts");
    const stdout = runForeignPlugin(found.path, invocation);
    whenDone();
    return command === "ADD" ? parsePluginResult(stdout, network.cniVersion) : undefined;
  };
}

/**
 * Whether GC and STATUS, the verbs of whole networks, are called. CNI has them from 1.1.0 on; our own plugins have them
 * in every version.
 */
export function verbOfNetwork(
  runtime: Runtime,
  { cniVersion }: Network,
  { type }: NetworkPlugin,
): { own?: PluginDefinition<PluginConfig>; hasVerb: boolean } {
  const found = findPlugin(type, runtime.pluginPath);
  return "own" in found ? { own: found.own, hasVerb: true } : { hasVerb: isSince(cniVersion, "1.1.0") };
}

function isSince(version: string, first: string): boolean {
  try {
    return compareVersions(version, first) >= 0;
  } catch {
    return false;
  }
}

export function checkNames({ name }: Network, request: AttachmentRequest | undefined): void {
  if (request !== undefined) checkContainerId(request.containerId);
  checkNetworkName(name);
  if (request !== undefined) checkGivenIfName(request.ifName);
}

export function invocationOf(
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
  return pairs.map(([key, value]) => `${key}=${value}`).join(";");
}

export function inVersion(result: Result, version: string): VersionedResult {
  return convertResult({ family: "1.0", result: { ...result, cniVersion: CURRENT_VERSION } }, version);
}

/** The result as other plugins and the cache get it. */
export function documentOf(result: VersionedResult | undefined): Record<string, unknown> | undefined {
  return result && resultDocument(result);
}

/** Runs `work` with a session in which what the first plugin opens serves the next ones too. */
export function inSession<T>(
  work: (session: Session) => T,
  options: Pick<SessionOptions, "gone" | "takesBack" | "tellsOperator"> = {},
): T {
  const session = openSession({ keepsOpen: true, ...options });
  try {
    return work(session);
  } finally {
    session.close();
  }
}

/** Runs `work`, naming the plugin and the operation in what it throws. */
export function namingPlugin<T>(plugin: NetworkPlugin, operation: "add" | "delete" | "plan", work: () => T): T {
  try {
    return work();
  } catch (error) {
    const name = plugin.name === "" ? "" : ` name="${plugin.name}"`;
    throw wrapped(`plugin type="${plugin.type}"${name} failed (${operation})`, error);
  }
}

export function wrapped(subject: string, error: unknown): CniError {
  const code = error instanceof CniError ? error.code : INTERNAL;
  return new CniError(code, `${subject}: ${errorText(error)}`, "", { cause: error });
}
