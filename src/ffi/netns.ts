/**
 * Network namespaces by descriptor: opening, comparing, working inside (network_namespaces(7), ioctl_nsfs(2)).
 */
import { ENOENT, ENOTDIR, errnoText, isErrno } from "./errno.ts";
import { printToStderr } from "./terminal.ts";
import { identify, O_NONBLOCK, O_RDONLY, openFile, whileOpen } from "./files.ts";
import { bind, check, exitNow, lastErrno, libc } from "./libc.ts";
import { getOption, preparing } from "./socket/socket.ts";

const NSFS_MAGIC = 0x6e736673;
const PROC_SUPER_MAGIC = 0x9fa0;
const NS_GET_NSTYPE = 0xb703;
export const CLONE_NEWNET = 0x40000000;

/** The path exists, but is not a network namespace. */
class NotANetnsError extends Error {
  constructor(what: string) {
    super(what);
    this.name = "NotANetnsError";
  }
}

/** Throws SyscallError when the path cannot be opened, NotANetnsError when it is not a network namespace. */
export function openNetns(path: string): number {
  // O_NONBLOCK: opening a FIFO in the namespace's place must not wait for a writer.
  return preparing(openFile(path, O_RDONLY | O_NONBLOCK), (fd) => {
    const buffer = new Uint8Array(128);
    check("fstatfs", libc.fstatfs(fd, buffer), path);
    const magic = new DataView(buffer.buffer).getUint32(0, true);
    if (magic !== NSFS_MAGIC && magic !== PROC_SUPER_MAGIC) {
      throw new NotANetnsError(`unknown FS magic on "${path}": ${magic.toString(16)}`);
    }
    if (libc.ioctl(fd, NS_GET_NSTYPE, null) !== CLONE_NEWNET) {
      throw new NotANetnsError(`"${path}" is not a network namespace`);
    }
    return fd;
  });
}

/** Whether an error of `openNetns` means that the namespace no longer exists. */
export function isNetnsGone(error: unknown): boolean {
  // Unmounting a namespace's bind mount, or a reboot, leaves a plain file.
  return error instanceof NotANetnsError || isErrno(error, ENOENT, ENOTDIR);
}

/** The namespace of this thread. */
export function openOwnNetns(): number {
  return openFile("/proc/thread-self/ns/net", O_RDONLY);
}

export function isSameNetns(one: number, other: number): boolean {
  return identify(one).id === identify(other).id;
}

/**
 * A number that identifies the namespace of the socket until the next boot (SO_NETNS_COOKIE, Linux 5.14), unlike paths
 * and inode numbers, which are reused. Undefined on older kernels.
 */
export function netnsCookie(socketFd: number): string | undefined {
  const cookie = new Uint8Array(8);
  return getOption(socketFd, "SO_NETNS_COOKIE", cookie) ? cookie.toHex() : undefined;
}

/** Runs `work` with the path of a new network namespace that is removed afterwards. */
export function withScratchNetns<T>(work: (path: string) => T): T {
  return whileOpen(makeNetns(), (scratch) => work(`/proc/self/fd/${scratch}`));
}

/** A new one, as a descriptor. It ends with what holds it. */
export function makeNetns(): number {
  const { unshare } = bind({ unshare: { args: ["i32"], returns: "i32" } });
  return whileOpen(openOwnNetns(), (home) => {
    check("unshare", unshare(CLONE_NEWNET), "network namespace");
    try {
      return openOwnNetns();
    } finally {
      returnTo(home);
    }
  });
}

/** Runs `work` with the thread inside `netns`, then returns to `home`. `work` must be synchronous. Errors name `path`. */
export function inNetns<T>(netns: number, home: number, work: () => T, path?: string): T {
  check(ENTERING, libc.setns(netns, CLONE_NEWNET), path);
  try {
    return work();
  } finally {
    returnTo(home);
  }
}

/** The system call of an error of `inNetns`. */
export const ENTERING = "setns";

function returnTo(home: number): void {
  // Try twice: the failure may be temporary, and there is no alternative.
  if (!isEntered(home) && !isEntered(home)) whenStranded(home, errnoText(lastErrno()));
}

/** Whether the thread is in the namespace now. */
export function isEntered(netns: number): boolean {
  return libc.setns(netns, CLONE_NEWNET) === 0;
}

/** Everything after this, undoing included, would happen in the container instead of on the host. */
let whenStranded = (_home: number, reason: string): void => {
  printToStderr(`patchbay: cannot return from a container's namespace: ${reason}; giving up, DEL will clean up`);
  exitNow(1);
};

/** For a library, which must not end the program. `act` returns when the thread is home. */
export function onStranded(act: (home: number, reason: string) => void): void {
  whenStranded = act;
}
