/**
 * What resources act on: the host's and the container's network, through sockets opened once.
 *
 * A netlink socket keeps the namespace it was opened in, so nearly all work on the container is done from outside.
 * Only sysctls need the thread inside, through `inside`.
 */
import { closeFile } from "../ffi/files.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../ffi/netlink/socket.ts";
import { inNetns, isNetnsGone, isSameNetns, openNetns, openOwnNetns } from "../ffi/netns.ts";

export interface Host {
  /** rtnetlink socket in the namespace this process works in. */
  readonly route: NetlinkSocket;
  /** NETLINK_NETFILTER socket in the same namespace. */
  readonly netfilter: NetlinkSocket;
  /** The container's side, or undefined when its namespace is gone or was not named. */
  readonly container: Container | undefined;
  /** What to do once the verb is over: close descriptors that hold a namespace or a lock. */
  onClose(action: () => void): void;
  close(): void;
}

export interface Container {
  readonly netnsPath: string;
  readonly netnsFd: number;
  /** rtnetlink socket inside the container's namespace. */
  readonly route: NetlinkSocket;
  /** Runs `work` with the thread inside the namespace; `work` must be synchronous and short. */
  inside<T>(work: () => T): T;
}

/** The container's namespace is the one this process works in. */
export class SameNetnsError extends Error {}

/**
 * Opens what a verb on `netnsPath` needs; sockets wait for their first use. With `mayBeGone` a namespace that is no
 * more reads as no container. Throws SameNetnsError before anything could be changed, unless `allowOwn`.
 */
export function openHost(netnsPath: string, options: { mayBeGone?: boolean; allowOwn?: boolean } = {}): Host {
  const closing: (() => void)[] = [];
  let route: NetlinkSocket | undefined;
  let netfilter: NetlinkSocket | undefined;
  const open = (protocol: number, namespace = <T>(work: () => T) => work()) => {
    const socket = namespace(() => openNetlink(protocol));
    closing.push(() => socket.close());
    return socket;
  };
  return {
    get route() {
      return route ??= open(NETLINK_ROUTE);
    },
    get netfilter() {
      return netfilter ??= open(NETLINK_NETFILTER);
    },
    container: netnsPath === "" ? undefined : openContainer(),
    onClose: (action) => void closing.push(action),
    close: () => {
      for (const action of closing.splice(0).reverse()) action();
    },
  };

  function openContainer(): Container | undefined {
    let netnsFd: number;
    try {
      netnsFd = openNetns(netnsPath);
    } catch (error) {
      if (options.mayBeGone && isNetnsGone(error)) return undefined;
      throw error;
    }
    closing.push(() => closeFile(netnsFd));
    const home = openOwnNetns();
    closing.push(() => closeFile(home));
    if (!options.allowOwn && isSameNetns(netnsFd, home)) {
      for (const action of closing.splice(0)) action();
      throw new SameNetnsError();
    }
    let inner: NetlinkSocket | undefined;
    const inside = <T>(work: () => T) => inNetns(netnsFd, home, work);
    return {
      netnsPath,
      netnsFd,
      inside,
      get route() {
        return inner ??= open(NETLINK_ROUTE, inside);
      },
    };
  }
}
