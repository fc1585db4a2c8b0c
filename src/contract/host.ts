/**
 * What resources act on: the host's and the container's network, through sockets opened once.
 *
 * A netlink socket keeps the namespace it was opened in, so nearly all work on the container is done from outside.
 * Only sysctls need the thread inside, through `inside`.
 */
import type { NetlinkSocket } from "../ffi/netlink/socket.ts";
import type { Command } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { Owner } from "./owner.ts";

export interface Host {
  /** rtnetlink socket in the namespace this process works in. */
  readonly route: NetlinkSocket;
  /** NETLINK_NETFILTER socket in the same namespace. */
  readonly netfilter: NetlinkSocket;
  /** The container's side, or undefined when its namespace is gone or was not named. */
  readonly container: Container | undefined;
  /**
   * Keeps others from undoing something shared, such as a bridge they made, until the verb is over: we are about to use
   * it.
   */
  useShared(): void;
  /** Whether nobody else on this host is using shared things. If so, nobody begins to until the verb is over. */
  isAloneWithShared(): boolean;
  /** The specifications of this kind that the ledgers of other attachments hold. Reads every ledger of the host. */
  recordedByOthers(kind: string, owner: Owner): unknown[];
  /** Like `recordedByOthers`, for removing what does not say whose it is. Gives up this attachment's own claim first. */
  claimedByOthers(kind: string, owner: Owner): unknown[];
  /**
   * Runs a verb of another plugin for this attachment (CNI spec 1.1.0, "Section 4: Plugin Delegation"): with this call's
   * configuration, or with `stdin`, a configuration of its own. Answers the result of ADD.
   */
  delegate(type: string, command: Command, stdin?: string): Result | undefined;
  /** Throws when `delegate` would not find the plugin. */
  requirePlugin(type: string): void;
}

export interface Container {
  readonly netnsPath: string;
  readonly netnsFd: number;
  /** Which namespace it is, whatever its path; undefined where the kernel does not tell. */
  readonly cookie: string | undefined;
  /** rtnetlink socket inside the container's namespace. */
  readonly route: NetlinkSocket;
  /** Runs `work` with the thread inside the namespace; `work` must be synchronous and short. */
  inside<T>(work: () => T): T;
  /**
   * Runs `work` while nobody else is choosing in this namespace what may be used once: a routing table, a rule's place.
   * The reference plugin sbr holds the same lock.
   */
  alone<T>(work: () => T): T;
}
