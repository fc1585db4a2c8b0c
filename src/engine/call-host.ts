/**
 * The host as one call sees it: what is open, what other attachments' ledgers say, and the way to other plugins with
 * this call's configuration.
 */
import { field, isObject } from "../cni/json.ts";
import type { Command, Invocation } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { Container, Host } from "../contract/host.ts";
import type { Owner } from "../contract/owner.ts";
import { findPlugin } from "./delegation/find-plugin.ts";
import { claimedByOthers, recordedByOthers } from "./ledger/claims.ts";
import type { Opened } from "./open-host.ts";

/** Carries out a call of another plugin, on what `from` has open. */
export type Delegate = (type: string, invocation: Invocation, from: Opened) => Result | undefined;

export class CallHost implements Host {
  /** `container` is left out when the one that is open is not the call's. */
  constructor(
    private readonly opened: Opened,
    private readonly invocation: Invocation,
    private readonly delegateFrom: Delegate,
    readonly container: Container | undefined,
  ) {}

  get route() {
    return this.opened.route;
  }

  get netfilter() {
    return this.opened.netfilter;
  }

  useShared(): void {
    this.opened.useShared();
  }

  isAloneWithShared(): boolean {
    return this.opened.isAloneWithShared();
  }

  recordedByOthers(kind: string, owner: Owner): unknown[] {
    return recordedByOthers(kind, owner);
  }

  claimedByOthers(kind: string, owner: Owner): unknown[] {
    return claimedByOthers(kind, owner);
  }

  delegate(type: string, command: Command, stdin?: string): Result | undefined {
    const { invocation } = this;
    const own = stdin === undefined ? {} : { stdin: this.withPrevResult(stdin, command), document: undefined };
    return this.delegateFrom(type, { ...invocation, ...own, command }, this);
  }

  requirePlugin(type: string): void {
    findPlugin(type, this.invocation.path);
  }

  /** The same without the container: its path may be another one's by now, with links of the same names. */
  withoutContainer(): CallHost {
    return new CallHost(this.opened, this.invocation, this.delegateFrom, undefined);
  }

  /** The same for another call, such as the ADD that a ledger tells of. */
  inCall(invocation: Invocation): CallHost {
    return new CallHost(this.opened, invocation, this.delegateFrom, this.container);
  }

  /** A configuration that was kept is as old as ADD; the result of ADD comes with each call after it. */
  private withPrevResult(stdin: string, command: Command): string {
    const { document } = this.invocation, prevResult = document && field(document, "prevResult");
    if (command === "ADD" || !isObject(prevResult)) return stdin;
    return JSON.stringify({ ...JSON.parse(stdin), prevResult });
  }
}
