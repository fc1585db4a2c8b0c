/** Opening what contract/host.ts describes: sockets, namespaces, the lock on what is shared. */
import { closeFile, makeDirectories, O_DIRECTORY, O_RDONLY, openFile } from "../ffi/files.ts";
import { libc } from "../ffi/libc.ts";
import { NETLINK_NETFILTER, NETLINK_ROUTE, type NetlinkSocket, openNetlink } from "../ffi/netlink/socket.ts";
import { inNetns, isNetnsGone, isSameNetns, netnsCookie, openNetns, openOwnNetns } from "../ffi/netns.ts";
import type { Container, Host } from "../contract/host.ts";
import { stateDirectory } from "./state-directory.ts";

const LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8;

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
  let lock: number | undefined;
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
    useShared: () => void libc.flock(sharedLock(), LOCK_SH),
    isAloneWithShared: () => libc.flock(sharedLock(), LOCK_EX | LOCK_NB) === 0,
    release: () => {
      if (lock !== undefined) libc.flock(lock, LOCK_UN);
    },
    recordedByOthers: (kind, owner) =>
      (require("./ledger/claims.ts") as typeof import("./ledger/claims.ts")).recordedByOthers(kind, owner),
    claimedByOthers: (kind, owner) =>
      (require("./ledger/claims.ts") as typeof import("./ledger/claims.ts")).claimedByOthers(kind, owner),
    close: () => {
      for (const action of closing.splice(0).reverse()) action();
    },
  };

  /** The state directory itself is what is locked: no lock file stays behind. */
  function sharedLock(): number {
    if (lock === undefined) {
      const directory = stateDirectory();
      makeDirectories(directory, 0o700);
      const fd = lock = openFile(directory, O_RDONLY | O_DIRECTORY);
      closing.push(() => closeFile(fd));
    }
    return lock;
  }

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
    let inner: NetlinkSocket | undefined, cookie: string | undefined;
    const inside = <T>(work: () => T) => inNetns(netnsFd, home, work);
    return {
      netnsPath,
      netnsFd,
      inside,
      alone: (work) =>
        (require("../ffi/lock.ts") as typeof import("../ffi/lock.ts")).whileLocked(netnsFd, netnsPath, work),
      get route() {
        return inner ??= open(NETLINK_ROUTE, inside);
      },
      get cookie() {
        return cookie ??= netnsCookie(this.route.fd);
      },
    };
  }
}

/** Whether the container's namespace is another than the one that the ledger remembers: its path was given away. */
export function isAnothers({ container }: Host, cookie: string | undefined): boolean {
  return container !== undefined && cookie !== undefined && container.cookie !== cookie;
}
