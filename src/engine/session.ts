/**
 * What is alive while calls are carried out, apart from what a call says (cni/invocation.ts): the sockets and namespaces
 * that are open, and the way to other plugins.
 *
 * One session serves one verb, or all plugins of a chain: then what the first plugin opens serves the next ones too.
 */
import { CniError, INVALID_ENVIRONMENT, INVALID_NETNS } from "../cni/error.ts";
import type { Invocation } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { PluginConfig, PluginDefinition } from "../contract/plugin.ts";
import { SyscallError } from "../ffi/errno.ts";
import { isNetnsGone } from "../ffi/netns.ts";
import { CallHost, type Delegate } from "./call-host.ts";
import { type Opened, type OpenHost, openHost, SameNetnsError } from "./open-host.ts";

export interface SessionOptions {
  /** What one call opens serves the next ones, until `close`. */
  keepsOpen?: boolean;
  /** Our own plugins answer GC and STATUS also where a network's version is older than those verbs. */
  inEveryVersion?: boolean;
}

/** How calls are carried out: engine/run.ts and delegation/delegate.ts, which call one another by way of the session. */
export interface Carriers {
  runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation, session: Session): Result | undefined;
  delegate(type: string, invocation: Invocation, session: Session): Result | undefined;
}

export class Session {
  private kept: { netnsPath: string; host: OpenHost } | undefined;

  constructor(
    private readonly carriers: Carriers,
    readonly options: SessionOptions = {},
    private readonly given?: Opened,
  ) {}

  runVerb(plugin: PluginDefinition<PluginConfig>, invocation: Invocation): Result | undefined {
    return this.carriers.runVerb(plugin, invocation, this);
  }

  /** The verb of another plugin, whoever made it. */
  delegate(type: string, invocation: Invocation): Result | undefined {
    return this.carriers.delegate(type, invocation, this);
  }

  /** For calls that are part of another one: they work on what that one has open. */
  within(opened: Opened): Session {
    return new Session(this.carriers, this.options, opened);
  }

  /** Runs `work` with the attachment's namespaces open. With `mayBeGone` the container's need not be there any more. */
  withHost<T>(invocation: Invocation, mayBeGone: boolean, work: (host: CallHost) => T): T {
    const look = (opened: Opened) => work(this.hostOf(opened, invocation));
    if (this.given !== undefined) return look(this.given);
    const kept = this.keptFor(invocation, mayBeGone), host = kept ?? openFor(invocation, mayBeGone);
    const stays = kept !== undefined || this.keep(invocation, host);
    try {
      return look(host);
    } finally {
      if (stays) host.release();
      else host.close();
    }
  }

  /** What is open, as the call sees it. */
  hostOf(opened: Opened, invocation: Invocation): CallHost {
    const delegateFrom: Delegate = (type, call, from) => this.within(from).delegate(type, call);
    return new CallHost(opened, invocation, delegateFrom, opened.container);
  }

  close(): void {
    this.kept?.host.close();
    this.kept = undefined;
  }

  private keptFor({ netnsPath }: Invocation, mayBeGone: boolean): OpenHost | undefined {
    const { kept } = this;
    const fits = kept?.netnsPath === netnsPath && (mayBeGone || kept.host.container !== undefined);
    return fits ? kept.host : undefined;
  }

  private keep({ netnsPath }: Invocation, host: OpenHost): boolean {
    if (!this.options.keepsOpen || this.kept !== undefined) return false;
    this.kept = { netnsPath, host };
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
