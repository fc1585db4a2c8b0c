/**
 * One verb of one plugin, in process. The exec'd plugin, delegation and the runtime's chains all come through here,
 * and here alone other errors become the one that reaches the user.
 */
import { CniError, INTERNAL, INVALID_CONFIG, INVALID_ENVIRONMENT, INVALID_NETNS, IO_FAILURE } from "../cni/error.ts";
import type { Command, Invocation as Parameters } from "../cni/invocation.ts";
import { field, isObject, parseDocument } from "../cni/json.ts";
import type { Result } from "../cni/result.ts";
import { checkVersions, configVersion, KNOWN_VERSIONS } from "../cni/versions.ts";
import { SyscallError } from "../ffi/errno.ts";
import { isNetnsGone } from "../ffi/netns.ts";
import { openHost, SameNetnsError } from "./host.ts";
import type { Host } from "../contract/host.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { inScene, isTracing } from "../contract/trace.ts";

export type { Command };

/** One call, in this process: the parameters as the runtime gave them, and what is already at hand. */
export interface Invocation extends Parameters {
  /** Set within one process: what the caller has already opened for this attachment. */
  host?: Host;
  /** Set by our own runtime, which asks our own plugins for GC and STATUS also where a network is older than they. */
  inEveryVersion?: boolean;
  /** Set by a chain: what one plugin opens serves the next ones. */
  kept?: KeptHost;
}

/** Sockets and namespaces of one attachment, open for a whole chain. Whoever made it closes it. */
export interface KeptHost {
  netnsPath?: string;
  host?: Host;
}

/** A verb as the files verb-*.ts implement it, behind everything the verbs have in common. */
export interface VerbCall {
  plugin: PluginDefinition<PluginConfig>;
  invocation: Invocation;
  /** The configuration as it was parsed: keys as written, nothing checked. */
  document: Record<string, unknown>;
}

/** Answers ADD's result (newest form, `cniVersion` as configured), nothing for other verbs. Throws CniError. */
export function runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation): Result | undefined {
  try {
    const document = invocation.document ?? parseDocument(invocation.stdin, "error unmarshall network config");
    if (!isObject(document)) throw new CniError(INVALID_CONFIG, "the network configuration must be a JSON object");
    const negotiated = invocation.inEveryVersion ? "DEL" : invocation.command;
    checkVersions(negotiated, configVersion(document), plugin.versions ?? KNOWN_VERSIONS);
    const call = { plugin, invocation: { ...invocation, document }, document };
    if (!isTracing()) return dispatch(call);
    const { command: verb, containerId, ifName } = invocation;
    const scene = { verb, plugin: plugin.name, network: String(field(document, "name")), containerId, ifName };
    return inScene(scene, () => dispatch(call));
  } catch (error) {
    throw asCniError(error);
  }
}

function dispatch(call: VerbCall): Result | undefined {
  const { command } = call.invocation;
  switch (command) {
    case "ADD":
      return (require("./verbs/add.ts") as typeof import("./verbs/add.ts")).runAdd(call);
    case "DEL":
      return (require("./verbs/del.ts") as typeof import("./verbs/del.ts")).runDel(call);
    case "CHECK":
      return (require("./verbs/check.ts") as typeof import("./verbs/check.ts")).runCheck(call);
    case "GC":
      return (require("./verbs/gc.ts") as typeof import("./verbs/gc.ts")).runGc(call);
    case "STATUS":
      return (require("./verbs/status.ts") as typeof import("./verbs/status.ts")).runStatus(call);
    default:
      throw new CniError(INVALID_ENVIRONMENT, `unknown CNI_COMMAND: ${command}`);
  }
}

function asCniError(error: unknown): CniError {
  if (error instanceof CniError) return error;
  const { message } = error as Error;
  return new CniError(error instanceof SyscallError ? IO_FAILURE : INTERNAL, message, "", { cause: error });
}

export function ownsNothingInside(plugin: PluginDefinition<PluginConfig>): boolean {
  return plugin.del !== undefined || plugin.keepsNothing === true;
}

/** Runs `work` with the attachment's namespaces open, and closes them. ADD and CHECK need the container's. */
export function withHost<T>(invocation: Invocation, mayBeGone: boolean, work: (host: Host) => T): T {
  if (invocation.host !== undefined) return work(invocation.host);
  const { kept, netnsPath } = invocation;
  const host = keptFor(invocation, mayBeGone) ?? openFor(invocation, mayBeGone);
  if (kept !== undefined && kept.host === undefined) Object.assign(kept, { netnsPath, host });
  try {
    return work(host);
  } finally {
    if (host === kept?.host) host.release();
    else host.close();
  }
}

function keptFor({ kept, netnsPath }: Invocation, mayBeGone: boolean): Host | undefined {
  const fits = kept?.netnsPath === netnsPath && (mayBeGone || kept.host?.container !== undefined);
  return fits ? kept.host : undefined;
}

function openFor(invocation: Invocation, mayBeGone: boolean): Host {
  try {
    return openHost(invocation.netnsPath, { mayBeGone, allowOwn: invocation.allowOwnNetns });
  } catch (error) {
    if (error instanceof SameNetnsError) {
      throw new CniError(
        INVALID_NETNS,
        "plugin's netns and netns from CNI_NETNS should not be the same",
        `CNI_NETNS is "${invocation.netnsPath}"`,
      );
    }
    // The words "failed to Statfs" are the reference plugins'; engines look for them.
    const reason = isNetnsGone(error) && error instanceof SyscallError
      ? `failed to Statfs "${invocation.netnsPath}": no such file or directory`
      : (error as Error).message;
    throw new CniError(
      INVALID_ENVIRONMENT,
      `failed to open netns "${invocation.netnsPath}": ${reason}`,
      "CNI_NETNS must be the path of a network namespace",
      { cause: error },
    );
  }
}
