/**
 * Failed system calls: which call, on what, and the kernel's reason.
 *
 * Texts follow errno(3) as the C library words them, in lower case, because container engines match on
 * phrases such as "no such file or directory".
 */

/** The errno values that the code names. The full list is in asm-generic/errno.h. */
export const EPERM = 1;
export const ENOENT = 2;
export const ESRCH = 3;
export const EINTR = 4;
export const EIO = 5;
export const EBADF = 9;
export const EAGAIN = 11;
export const ENOMEM = 12;
export const EACCES = 13;
export const EBUSY = 16;
export const EEXIST = 17;
export const EXDEV = 18;
export const ENODEV = 19;
export const ENOTDIR = 20;
export const EISDIR = 21;
export const EINVAL = 22;
export const ENFILE = 23;
export const EMFILE = 24;
export const ETXTBSY = 26;
export const EFBIG = 27;
export const ENOSPC = 28;
export const EROFS = 30;
export const EPIPE = 32;
export const ERANGE = 34;
export const ENAMETOOLONG = 36;
export const ENOSYS = 38;
export const ENOTEMPTY = 39;
export const ELOOP = 40;
export const ENODATA = 61;
export const ERESTART = 85;
export const EMSGSIZE = 90;
export const ENOPROTOOPT = 92;
export const EPROTONOSUPPORT = 93;
export const EOPNOTSUPP = 95;
export const EAFNOSUPPORT = 97;
export const EADDRINUSE = 98;
export const EADDRNOTAVAIL = 99;
export const ENETDOWN = 100;
export const ENETUNREACH = 101;
export const ECONNABORTED = 103;
export const ECONNRESET = 104;
export const ENOBUFS = 105;
export const ETIMEDOUT = 110;
export const ECONNREFUSED = 111;
export const EHOSTUNREACH = 113;
export const ESTALE = 116;
export const EDQUOT = 122;

const known: Record<number, [name: string, text: string]> = {
  [EPERM]: ["EPERM", "operation not permitted"],
  [ENOENT]: ["ENOENT", "no such file or directory"],
  [ESRCH]: ["ESRCH", "no such process"],
  [EINTR]: ["EINTR", "interrupted system call"],
  [EIO]: ["EIO", "input/output error"],
  6: ["ENXIO", "no such device or address"],
  7: ["E2BIG", "argument list too long"],
  8: ["ENOEXEC", "exec format error"],
  [EBADF]: ["EBADF", "bad file descriptor"],
  10: ["ECHILD", "no child processes"],
  [EAGAIN]: ["EAGAIN", "resource temporarily unavailable"],
  [ENOMEM]: ["ENOMEM", "cannot allocate memory"],
  [EACCES]: ["EACCES", "permission denied"],
  14: ["EFAULT", "bad address"],
  [EBUSY]: ["EBUSY", "device or resource busy"],
  [EEXIST]: ["EEXIST", "file exists"],
  [EXDEV]: ["EXDEV", "invalid cross-device link"],
  [ENODEV]: ["ENODEV", "no such device"],
  [ENOTDIR]: ["ENOTDIR", "not a directory"],
  [EISDIR]: ["EISDIR", "is a directory"],
  [EINVAL]: ["EINVAL", "invalid argument"],
  [ENFILE]: ["ENFILE", "too many open files in system"],
  [EMFILE]: ["EMFILE", "too many open files"],
  25: ["ENOTTY", "inappropriate ioctl for device"],
  [ETXTBSY]: ["ETXTBSY", "text file busy"],
  [EFBIG]: ["EFBIG", "file too large"],
  [ENOSPC]: ["ENOSPC", "no space left on device"],
  29: ["ESPIPE", "illegal seek"],
  [EROFS]: ["EROFS", "read-only file system"],
  31: ["EMLINK", "too many links"],
  [EPIPE]: ["EPIPE", "broken pipe"],
  [ERANGE]: ["ERANGE", "numerical result out of range"],
  [ENAMETOOLONG]: ["ENAMETOOLONG", "file name too long"],
  [ENOSYS]: ["ENOSYS", "function not implemented"],
  [ENOTEMPTY]: ["ENOTEMPTY", "directory not empty"],
  [ELOOP]: ["ELOOP", "too many levels of symbolic links"],
  [ENODATA]: ["ENODATA", "no data available"],
  71: ["EPROTO", "protocol error"],
  75: ["EOVERFLOW", "value too large for defined data type"],
  [ERESTART]: ["ERESTART", "interrupted system call should be restarted"],
  [EMSGSIZE]: ["EMSGSIZE", "message too long"],
  [EPROTONOSUPPORT]: ["EPROTONOSUPPORT", "protocol not supported"],
  [EOPNOTSUPP]: ["EOPNOTSUPP", "operation not supported"],
  [EAFNOSUPPORT]: ["EAFNOSUPPORT", "address family not supported by protocol"],
  [EADDRINUSE]: ["EADDRINUSE", "address already in use"],
  [EADDRNOTAVAIL]: ["EADDRNOTAVAIL", "cannot assign requested address"],
  [ENETDOWN]: ["ENETDOWN", "network is down"],
  [ENETUNREACH]: ["ENETUNREACH", "network is unreachable"],
  [ENOBUFS]: ["ENOBUFS", "no buffer space available"],
  [ETIMEDOUT]: ["ETIMEDOUT", "connection timed out"],
  [ECONNREFUSED]: ["ECONNREFUSED", "connection refused"],
  [EHOSTUNREACH]: ["EHOSTUNREACH", "no route to host"],
  [ESTALE]: ["ESTALE", "stale file handle"],
  [EDQUOT]: ["EDQUOT", "disk quota exceeded"],
};

export function errnoName(errno: number): string {
  return known[errno]?.[0] ?? `errno ${errno}`;
}

export function errnoText(errno: number): string {
  return known[errno]?.[1] ?? `unknown error ${errno}`;
}

/** A system call the kernel refused. The message reads `open /run/x: no such file or directory`. */
export class SyscallError extends Error {
  constructor(readonly call: string, readonly errno: number, readonly subject = "") {
    super(`${call}${subject === "" ? "" : ` ${subject}`}: ${errnoText(errno)}`);
    this.name = "SyscallError";
  }
}

export function isErrno(error: unknown, ...errnos: number[]): boolean {
  return error instanceof SyscallError && errnos.includes(error.errno);
}
