/**
 * The live objects of a call, as opposed to its parameters (cni/invocation.ts): open sockets and namespaces, and
 * delegation to other plugins. run.ts opens sessions.
 */
import type { Invocation } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import type { CallHost } from "./call-host.ts";
import type { LedgerRecord } from "./ledger/record.ts";
import type { Opened } from "./open-host.ts";

/** Serves one verb, or all plugins of a chain, which then share the sockets and namespaces. */
export interface Session {
  readonly options: SessionOptions;
  /** Returns the result of ADD (newest form, `cniVersion` as configured), undefined for other verbs. Throws CniError. */
  runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation): Result | undefined;
  /**
   * Runs a verb of another plugin, such as an IPAM plugin (CNI spec 1.1.0, "Section 4: Plugin Delegation"): in process when
   * the plugin found is this same binary. Returns the result of ADD in the newest form. Throws the delegate's own error.
   */
  delegate(type: string, invocation: Invocation): Result | undefined;
  /** Runs GC or STATUS of the plugin that this one delegates to, or else of its IPAM plugin. */
  passOn(plugin: PluginDefinition<PluginConfig>, conf: PluginConfig, invocation: Invocation): void;
  /** Runs `work` with the attachment's namespaces open. With `mayBeGone` the container's may be missing. */
  withHost<T>(invocation: Invocation, mayBeGone: boolean, work: (host: CallHost) => T): T;
  /** `opened` as the call sees it, if there is one. */
  hostOf(opened: Opened, invocation?: Invocation): CallHost;
  close(): void;
}

export interface SessionOptions {
  /** Later calls reuse what the first one opened, until `close`. */
  keepsOpen?: boolean;
  /** Our own plugins also run GC and STATUS when the network's version is older than those verbs. */
  inEveryVersion?: boolean;
  /** The ledgers that showed that the container is gone: DEL removes nothing of one that was attached since. */
  gone?: readonly LedgerRecord[];
  /** CHECK tells what is in the way of what was made, too (`inTheWay` of the kinds). */
  tellsOperator?: boolean;
  /** DEL after an ADD of this process that failed: what it made stands in ledgers, and the rest is somebody else's. */
  takesBack?: TakenBack;
}

export interface TakenBack {
  /** The type of the plugin whose ADD failed and was undone; undefined when others of the chain have it, too. */
  failed: string | undefined;
}
