/**
 * The host as one call sees it: the open sockets and namespaces, the ledgers of other attachments, and delegation with
 * this call's configuration.
 */
import { field, isObject } from "../cni/json.ts";
import type { Invocation, Verb } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { Container, Host } from "../contract/host.ts";
import { findPlugin } from "./delegation/find-plugin.ts";
import { claimedByOthers, recordedByOthers } from "./ledger/claims.ts";
import type { Opened } from "./open-host.ts";

/** Calls another plugin, which uses the sockets and namespaces that `from` has open. */
type Delegate = (type: string, invocation: Invocation, from: Opened) => Result | undefined;

export class CallHost implements Host {
  readonly recordedByOthers = recordedByOthers;
  readonly claimedByOthers = claimedByOthers;

  /** `container` is undefined when the open one does not belong to this call. */
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

  get cookie() {
    return this.opened.cookie;
  }

  useShared(): void {
    this.opened.useShared();
  }

  isAloneWithShared(): boolean {
    return this.opened.isAloneWithShared();
  }

  delegate(type: string, command: Verb, stdin?: string): Result | undefined {
    const { invocation } = this;
    const own = stdin === undefined ? {} : { stdin: this.withPrevResult(stdin, command), document: undefined };
    return this.delegateFrom(type, { ...invocation, ...own, command }, this);
  }

  requirePlugin(type: string): void {
    findPlugin(type, this.invocation.path);
  }

  /** A copy without the container, for when its path belongs to another container with links of the same names. */
  withoutContainer(): CallHost {
    return new CallHost(this.opened, this.invocation, this.delegateFrom, undefined);
  }

  /** A copy for another call, such as an ADD recorded in a ledger. */
  inCall(invocation: Invocation): CallHost {
    return new CallHost(this.opened, invocation, this.delegateFrom, this.container);
  }

  /** A stored configuration dates from ADD and lacks its result. Later calls bring prevResult, so it is added here. */
  private withPrevResult(stdin: string, command: Verb): string {
    const { document } = this.invocation, prevResult = document && field(document, "prevResult");
    if (command === "ADD" || !isObject(prevResult)) return stdin;
    return JSON.stringify({ ...JSON.parse(stdin), prevResult });
  }
}
