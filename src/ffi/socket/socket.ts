/** Sockets of any family (socket(2), socket(7)), and the numbers of their calls. src/native/launch.h has some of them, too. */
import { closeFile } from "../files.ts";
import { EAGAIN, EINPROGRESS, EINTR, ETIMEDOUT, SyscallError } from "../errno.ts";
import { check, lastErrno, libc } from "../libc.ts";

export const AF_UNSPEC = 0, AF_UNIX = 1, AF_INET = 2, AF_BRIDGE = 7, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17;
export const SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_SEQPACKET = 5;
export const SOCK_NONBLOCK = 0o4000, SOCK_CLOEXEC = 0o2000000;
export const SOL_SOCKET = 1;
const options = {
  SO_REUSEADDR: 2,
  SO_TYPE: 3,
  SO_ERROR: 4,
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_LINGER: 13,
  SO_PASSCRED: 16,
  SO_PEERCRED: 17,
  SO_RCVTIMEO: 20,
  SO_SNDTIMEO: 21,
  SO_BINDTODEVICE: 25,
  SO_ATTACH_FILTER: 26,
  SO_SNDBUFFORCE: 32,
  SO_NETNS_COOKIE: 71,
  SO_PEERPIDFD: 77,
};
type Option = keyof typeof options;
export const SCM_RIGHTS = 1, SCM_CREDENTIALS = 2;
export const MSG_TRUNC = 0x20, MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000, MSG_CMSG_CLOEXEC = 0x40000000;

/** `type` may include SOCK_NONBLOCK. Programs that we start do not get the socket. */
export function openSocket(what: string, family: number, type: number, protocol = 0): number {
  return check(what, libc.socket(family, type | SOCK_CLOEXEC, protocol));
}

/** Returns what `prepare` makes of the new socket or file, which is closed when that fails. */
export function preparing<T>(fd: number, prepare: (fd: number) => T): T {
  try {
    return prepare(fd);
  } catch (error) {
    closeFile(fd);
    throw error;
  }
}

export function setOption(fd: number, option: Option, value: NodeJS.TypedArray, subject?: string): void {
  check(`setsockopt ${option}`, trySetOption(fd, option, value), subject);
}

/** Returns a negative number on failure (errno(3)). */
export function trySetOption(fd: number, option: Option, value: NodeJS.TypedArray): number {
  return libc.setsockopt(fd, SOL_SOCKET, options[option], value, value.byteLength);
}

/** Fills `value`. Returns false on failure (errno(3)). */
export function getOption(fd: number, option: Option, value: NodeJS.TypedArray): boolean {
  return libc.getsockopt(fd, SOL_SOCKET, options[option], value, Int32Array.of(value.byteLength)) === 0;
}

/** SO_SNDTIMEO also limits how long connecting waits for a listener that accepts nobody. */
export function limitWait(fd: number, option: "SO_SNDTIMEO" | "SO_RCVTIMEO", ms: number): void {
  setOption(fd, option, new BigInt64Array([BigInt(Math.floor(ms / 1000)), BigInt((ms % 1000) * 1000)]));
}

/** Throws SyscallError: ETIMEDOUT when the other end takes nobody in time. Sending has the same limit afterwards. */
export function connectWithin(fd: number, address: Uint8Array, patienceMs: number, subject: string): void {
  limitWait(fd, "SO_SNDTIMEO", patienceMs);
  for (;;) {
    if (libc.connect(fd, address, address.length) === 0) return;
    const errno = lastErrno();
    if (errno === EINTR) continue;
    // What the kernel says when the time is over: unix(7), tcp(7).
    const isLate = errno === EAGAIN || errno === EINPROGRESS;
    throw new SyscallError("connect", isLate ? ETIMEDOUT : errno, subject);
  }
}
