/**
 * What resources act on: the network of the host and of the container, through sockets that are opened once.
 *
 * A netlink socket keeps the namespace it was opened in, so nearly all work on the container is done from outside.
 * Only sysctls need the thread inside, through `inside`.
 */
import type { NetlinkSocket } from "../ffi/netlink/socket.ts";
import type { Verb } from "../cni/invocation.ts";
import type { Result } from "../cni/result.ts";
import type { Owner } from "./owner.ts";

export interface Host {
  /** rtnetlink socket in the host's namespace, which is the one this process runs in. */
  readonly route: NetlinkSocket;
  /** NETLINK_NETFILTER socket in the same namespace. */
  readonly netfilter: NetlinkSocket;
  /** As `Container.cookie`, of the host's namespace. */
  readonly cookie: string | undefined;
  /** Undefined when the container's namespace is gone or was not given. */
  readonly container: Container | undefined;
  /** Until the verb ends, prevents others from removing a shared thing that we are about to use, such as a bridge. */
  useShared(): void;
  /** Whether no other call on this host uses shared things. If so, none can start to until the verb ends. */
  isAloneWithShared(): boolean;
  /** The specifications of this kind in the ledgers of other attachments. Reads every ledger of the host. */
  recordedByOthers(kind: string, owner: Owner): unknown[];
  /**
   * Like `recordedByOthers`, for removing things without an owner. First writes `givenUp` to our own ledger, so two
   * concurrent DELs cannot both leave the thing to each other.
   */
  claimedByOthers(kind: string, owner: Owner): unknown[];
  /**
   * Runs a verb of another plugin for this attachment (CNI spec 1.1.0, "Section 4: Plugin Delegation"), with this
   * call's configuration or with `stdin`. Returns the result of ADD.
   */
  delegate(type: string, command: Verb, stdin?: string): Result | undefined;
  /** Throws when `delegate` would not find the plugin. */
  requirePlugin(type: string): void;
}

export interface Container {
  readonly netnsPath: string;
  readonly netnsFd: number;
  /** The kernel's identifier of the namespace, independent of its path; undefined on kernels without one. */
  readonly cookie: string | undefined;
  /** rtnetlink socket inside the container's namespace. */
  readonly route: NetlinkSocket;
  /** Runs `work` with the thread inside the namespace; `work` must be synchronous and short. */
  inside<T>(work: () => T): T;
  /**
   * Runs `work` under the lock for choosing something free in this namespace: a routing table, a rule's priority. The
   * reference plugin sbr takes the same lock.
   */
  alone<T>(work: () => T): T;
}
