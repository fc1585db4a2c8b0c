/** Opens what a verb works on: sockets, namespaces, and the lock on what attachments share. */
import { closeFile, makeDirectories, O_DIRECTORY, O_RDONLY, openFile } from "../ffi/files.ts";
import { lockExclusive, lockShared, tryLockExclusive, unlock, whileLocked } from "../process/lock.ts";
import { hostSockets, ownNetns } from "../process/kept-open.ts";
import { NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../ffi/netlink/socket.ts";
import { inNetns, isNetnsGone, isSameNetns, netnsCookie, openNetns } from "../ffi/netns.ts";
import type { Container, Host } from "../contract/host.ts";
import { stateDirectory } from "../process/state-directory.ts";

/** The part of a host that does not depend on the call. */
export type Opened = Pick<Host, "route" | "netfilter" | "cookie" | "container" | "useShared" | "isAloneWithShared">;

export interface OpenHost extends Opened {
  /** Waits until nobody else uses shared things; then nobody can start to before the verb ends. */
  waitUntilAlone(): void;
  /** Ends the verb; sockets and namespaces stay open for the next one. */
  release(): void;
  close(): void;
}

/** The container's namespace is the one this process runs in. */
export class SameNetnsError extends Error {}

export interface OpenOptions {
  /** A missing namespace means no container, not an error. */
  mayBeGone?: boolean;
  /** The container may share our namespace. Otherwise opening it throws SameNetnsError and changes nothing. */
  allowOwn?: boolean;
}

/** Sockets are opened on first use. */
export function openHost(netnsPath: string, options: OpenOptions = {}): OpenHost {
  const closing: Closing = [], shared = new SharedLock(closing);
  let route: NetlinkSocket | undefined, netfilter: NetlinkSocket | undefined, cookie: string | undefined;
  return {
    get route() {
      return route ??= takeSocket("route", closing);
    },
    get netfilter() {
      return netfilter ??= takeSocket("netfilter", closing);
    },
    get cookie() {
      return cookie ??= netnsCookie(this.route.fd);
    },
    container: netnsPath === "" ? undefined : openContainer(netnsPath, options, closing),
    useShared: () => void lockShared(shared.fd),
    isAloneWithShared: () => tryLockExclusive(shared.fd),
    waitUntilAlone: () => lockExclusive(shared.fd),
    release: () => shared.release(),
    close: () => closeAll(closing),
  };
}

/** The steps of `close`, in the order of opening. */
type Closing = (() => void)[];

function closeAll(closing: Closing): void {
  for (const action of closing.splice(0).reverse()) action();
}

function takeSocket(which: keyof typeof hostSockets, closing: Closing): NetlinkSocket {
  const socket = hostSockets[which].take();
  closing.push(() => hostSockets[which].giveBack(socket));
  return socket;
}

function openSocket(protocol: number, closing: Closing): NetlinkSocket {
  const socket = openNetlink(protocol);
  closing.push(() => socket.close());
  return socket;
}

/** Locks the state directory itself, so no lock file is left behind. */
class SharedLock {
  private opened: number | undefined;

  constructor(private readonly closing: Closing) {}

  get fd(): number {
    if (this.opened === undefined) {
      const directory = stateDirectory();
      makeDirectories(directory, 0o700);
      const fd = this.opened = openFile(directory, O_RDONLY | O_DIRECTORY);
      this.closing.push(() => closeFile(fd));
    }
    return this.opened;
  }

  release(): void {
    if (this.opened !== undefined) unlock(this.opened);
  }
}

function openContainer(netnsPath: string, options: OpenOptions, closing: Closing): Container | undefined {
  let netnsFd: number;
  try {
    netnsFd = openNetns(netnsPath);
  } catch (error) {
    if (options.mayBeGone && isNetnsGone(error)) return undefined;
    throw error;
  }
  closing.push(() => closeFile(netnsFd));
  const home = ownNetns.take();
  closing.push(() => ownNetns.giveBack(home));
  if (!options.allowOwn && isSameNetns(netnsFd, home)) {
    closeAll(closing);
    throw new SameNetnsError();
  }
  let inner: NetlinkSocket | undefined, cookie: string | undefined;
  const inside = <T>(work: () => T) => inNetns(netnsFd, home, work, netnsPath);
  return {
    netnsPath,
    netnsFd,
    inside,
    alone: (work) => whileLocked(netnsFd, netnsPath, work),
    get route() {
      return inner ??= inside(() => openSocket(NETLINK_ROUTE, closing));
    },
    get cookie() {
      return cookie ??= netnsCookie(this.route.fd);
    },
  };
}

/** Whether the container's namespace has another cookie: then its path belongs to another container now. */
export function isOtherNamespace({ container }: Opened, cookie: string | undefined): boolean {
  return container !== undefined && cookie !== undefined && container.cookie !== cookie;
}
