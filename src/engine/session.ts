/**
 * The live objects of a call, as opposed to its parameters (cni/invocation.ts): open sockets and namespaces, and
 * delegation to other plugins.
 *
 * One session serves one verb, or all plugins of a chain, which then share the sockets and namespaces.
 */
import { CniError, INVALID_ENVIRONMENT, INVALID_NETNS } from "../cni/error.ts";
import type { Invocation } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { SyscallError } from "../ffi/errno.ts";
import { isNetnsGone } from "../ffi/netns.ts";
import type { LedgerRecord } from "./ledger/record.ts";
import { CallHost, type Delegate } from "./call-host.ts";
import { type Opened, type OpenHost, openHost, SameNetnsError } from "./open-host.ts";

export interface SessionOptions {
  /** Later calls reuse what the first one opened, until `close`. */
  keepsOpen?: boolean;
  /** Our own plugins also run GC and STATUS when the network's version is older than those verbs. */
  inEveryVersion?: boolean;
  /** The ledgers that showed that the container is gone: DEL removes nothing of one that was attached since. */
  gone?: readonly LedgerRecord[];
  /** DEL after an ADD of this process that failed: what it made stands in ledgers, and the rest is somebody else's. */
  takesBack?: TakenBack;
}

export interface TakenBack {
  /** The type of the plugin whose ADD failed and was undone; undefined when others of the chain have it, too. */
  failed: string | undefined;
}

/** engine/run.ts and delegation/delegate.ts, which call each other through the session. */
export interface Callees {
  runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation, session: Session): Result | undefined;
  delegate(type: string, invocation: Invocation, session: Session): Result | undefined;
}

export class Session {
  private reused: { netnsPath: string; host: OpenHost } | undefined;

  constructor(
    private readonly callees: Callees,
    readonly options: SessionOptions = {},
    private readonly given?: Opened,
  ) {}

  runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation): Result | undefined {
    return this.callees.runVerb(plugin, invocation, this);
  }

  /** Runs a verb of another plugin, ours or foreign. */
  delegate(type: string, invocation: Invocation): Result | undefined {
    return this.callees.delegate(type, invocation, this);
  }

  /** A session for calls that are part of another one and use its sockets and namespaces. */
  within(opened: Opened): Session {
    return new Session(this.callees, this.options, opened);
  }

  /** Runs `work` with the attachment's namespaces open. With `mayBeGone` the container's may be missing. */
  withHost<T>(invocation: Invocation, mayBeGone: boolean, work: (host: CallHost) => T): T {
    const run = (opened: Opened) => work(this.hostOf(opened, invocation));
    if (this.given !== undefined) return run(this.given);
    const reused = this.reusedFor(invocation, mayBeGone), host = reused ?? openFor(invocation, mayBeGone);
    const staysOpen = reused !== undefined || this.keep(invocation, host);
    try {
      return run(host);
    } finally {
      if (staysOpen) host.release();
      else host.close();
    }
  }

  /** `opened` as the call sees it. */
  hostOf(opened: Opened, invocation: Invocation): CallHost {
    const delegateFrom: Delegate = (type, call, from) => this.within(from).delegate(type, call);
    return new CallHost(opened, invocation, delegateFrom, opened.container);
  }

  close(): void {
    this.reused?.host.close();
    this.reused = undefined;
  }

  private reusedFor({ netnsPath }: Invocation, mayBeGone: boolean): OpenHost | undefined {
    const { reused } = this;
    const fits = reused?.netnsPath === netnsPath && (mayBeGone || reused.host.container !== undefined);
    return fits ? reused.host : undefined;
  }

  private keep({ netnsPath }: Invocation, host: OpenHost): boolean {
    if (!this.options.keepsOpen || this.reused !== undefined) return false;
    this.reused = { netnsPath, host };
    return true;
  }
}

function openFor({ netnsPath, allowOwnNetns }: Invocation, mayBeGone: boolean): OpenHost {
  try {
    return openHost(netnsPath, { mayBeGone, allowOwn: allowOwnNetns });
  } catch (error) {
    if (error instanceof SameNetnsError) {
      throw new CniError(
        INVALID_NETNS,
        "plugin's netns and netns from CNI_NETNS should not be the same",
        `CNI_NETNS is "${netnsPath}"`,
      );
    }
    // The words "failed to Statfs" are the reference plugins'; engines look for them.
    const reason = isNetnsGone(error) && error instanceof SyscallError
      ? `failed to Statfs "${netnsPath}": no such file or directory`
      : (error as Error).message;
    throw new CniError(
      INVALID_ENVIRONMENT,
      `failed to open netns "${netnsPath}": ${reason}`,
      "CNI_NETNS must be the path of a network namespace",
      { cause: error },
    );
  }
}
