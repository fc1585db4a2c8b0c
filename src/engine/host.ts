/**
 * What resources act on: the host's and the container's network, through sockets opened once.
 *
 * A netlink socket keeps the namespace it was opened in, so nearly all work on the container is done from outside.
 * Only sysctls need the thread inside, through `inContainer`.
 */
import type { NetlinkSocket } from "../ffi/netlink/socket.ts";

export interface Host {
  /** rtnetlink socket in the namespace this process works in. */
  readonly route: NetlinkSocket;
  /** NETLINK_NETFILTER socket in the same namespace. */
  readonly netfilter: NetlinkSocket;
  /** The container's side, or undefined when its namespace is gone or was not named. */
  readonly container: Container | undefined;
}

export interface Container {
  readonly netnsPath: string;
  readonly netnsFd: number;
  /** rtnetlink socket inside the container's namespace. */
  readonly route: NetlinkSocket;
  /** Runs `work` with the thread inside the namespace; `work` must be synchronous and short. */
  inside<T>(work: () => T): T;
}
