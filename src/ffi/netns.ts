/**
 * Network namespaces by descriptor: opening a path as one, comparing two, and working inside one.
 *
 * See network_namespaces(7) and ioctl_nsfs(2).
 */
import { ENOENT, ENOTDIR, errnoText, isErrno } from "./errno.ts";
import { warn } from "./warn.ts";
import { closeFile, identify, O_NONBLOCK, O_RDONLY, openFile } from "./files.ts";
import { bind, check, exitNow, lastErrno, libc } from "./libc.ts";

const NSFS_MAGIC = 0x6e736673;
const PROC_SUPER_MAGIC = 0x9fa0;
const NS_GET_NSTYPE = 0xb703;
const CLONE_NEWNET = 0x40000000;

/** The path exists and is something other than a network namespace. */
export class NotANetnsError extends Error {
  constructor(what: string) {
    super(what);
    this.name = "NotANetnsError";
  }
}

/** Opens the namespace. Throws SyscallError when the path cannot be opened, NotANetnsError when it is another thing. */
export function openNetns(path: string): number {
  // O_NONBLOCK: opening a FIFO left in the namespace's place must not wait for its writer.
  const fd = openFile(path, O_RDONLY | O_NONBLOCK);
  try {
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
  } catch (error) {
    closeFile(fd);
    throw error;
  }
}

/** Whether an error of `openNetns` means that the container's namespace is no more. */
export function isNetnsGone(error: unknown): boolean {
  // A plain file is what is left when the bind mount of a namespace was undone (for example by a reboot).
  return error instanceof NotANetnsError || isErrno(error, ENOENT, ENOTDIR);
}

/** The namespace this process works in. */
export function openOwnNetns(): number {
  return openFile("/proc/thread-self/ns/net", O_RDONLY);
}

export function isSameNetns(one: number, other: number): boolean {
  return identify(one).id === identify(other).id;
}

/**
 * A number that no other namespace has or had since the machine started, asked of a socket in it (Linux 5.14,
 * SO_NETNS_COOKIE): paths and inode numbers are given to the next one. Undefined where the kernel does not tell.
 */
export function netnsCookie(socketFd: number): string | undefined {
  const SOL_SOCKET = 1, SO_NETNS_COOKIE = 71;
  const cookie = new Uint8Array(8), length = new Uint8Array([cookie.length, 0, 0, 0]);
  return libc.getsockopt(socketFd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, length) === 0 ? cookie.toHex() : undefined;
}

/** Runs `work` with the path of a new network namespace, which ends with it. */
export function withScratchNetns<T>(work: (path: string) => T): T {
  const { unshare } = bind({ unshare: { args: ["i32"], returns: "i32" } });
  const home = openOwnNetns();
  let scratch: number | undefined;
  try {
    check("unshare", unshare(CLONE_NEWNET), "network namespace");
    try {
      scratch = openOwnNetns();
    } finally {
      check("setns", libc.setns(home, CLONE_NEWNET));
    }
    return work(`/proc/self/fd/${scratch}`);
  } finally {
    if (scratch !== undefined) closeFile(scratch);
    closeFile(home);
  }
}

/** Runs `work` with the thread inside `netns`, and comes back to `home` whatever happens. `work` must not yield. */
export function inNetns<T>(netns: number, home: number, work: () => T): T {
  check("setns", libc.setns(netns, CLONE_NEWNET));
  try {
    return work();
  } finally {
    // Once more: what is refused the first time may be let through the second, and there is no other way on.
    if (libc.setns(home, CLONE_NEWNET) !== 0 && libc.setns(home, CLONE_NEWNET) !== 0) {
      // Anything done from here on, undoing included, would be done to the container instead of the host.
      warn(`cannot return from a container's namespace: ${errnoText(lastErrno())}; giving up, DEL will clean up`);
      exitNow(1);
    }
  }
}
