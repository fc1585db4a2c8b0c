/**
 * Failed system calls: which call, on what, and the kernel's reason.
 *
 * Texts are the C library's (strerror(3)), in lower case, because container engines match on phrases such as "no such
 * file or directory".
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
export const ENETUNREACH = 101;
export const ECONNABORTED = 103;
export const ECONNRESET = 104;
export const ENOBUFS = 105;
export const ETIMEDOUT = 110;
export const ECONNREFUSED = 111;
export const EHOSTUNREACH = 113;
export const EINPROGRESS = 115;
export const EDQUOT = 122;

/** From 1 on, one a line; 41 and 58 are nobody's. Lines, because every process loads this and few need one. */
const TEXTS = `
operation not permitted
no such file or directory
no such process
interrupted system call
input/output error
no such device or address
argument list too long
exec format error
bad file descriptor
no child processes
resource temporarily unavailable
cannot allocate memory
permission denied
bad address
block device required
device or resource busy
file exists
invalid cross-device link
no such device
not a directory
is a directory
invalid argument
too many open files in system
too many open files
inappropriate ioctl for device
text file busy
file too large
no space left on device
illegal seek
read-only file system
too many links
broken pipe
numerical argument out of domain
numerical result out of range
resource deadlock avoided
file name too long
no locks available
function not implemented
directory not empty
too many levels of symbolic links

no message of desired type
identifier removed
channel number out of range
level 2 not synchronized
level 3 halted
level 3 reset
link number out of range
protocol driver not attached
no CSI structure available
level 2 halted
invalid exchange
invalid request descriptor
exchange full
no anode
invalid request code
invalid slot

bad font file format
device not a stream
no data available
timer expired
out of streams resources
machine is not on the network
package not installed
object is remote
link has been severed
advertise error
srmount error
communication error on send
protocol error
multihop attempted
RFS specific error
bad message
value too large for defined data type
name not unique on network
file descriptor in bad state
remote address changed
can not access a needed shared library
accessing a corrupted shared library
.lib section in a.out corrupted
attempting to link in too many shared libraries
cannot exec a shared library directly
invalid or incomplete multibyte or wide character
interrupted system call should be restarted
streams pipe error
too many users
socket operation on non-socket
destination address required
message too long
protocol wrong type for socket
protocol not available
protocol not supported
socket type not supported
operation not supported
protocol family not supported
address family not supported by protocol
address already in use
cannot assign requested address
network is down
network is unreachable
network dropped connection on reset
software caused connection abort
connection reset by peer
no buffer space available
transport endpoint is already connected
transport endpoint is not connected
cannot send after transport endpoint shutdown
too many references: cannot splice
connection timed out
connection refused
host is down
no route to host
operation already in progress
operation now in progress
stale file handle
structure needs cleaning
not a XENIX named type file
no XENIX semaphores available
is a named type file
remote I/O error
disk quota exceeded
no medium found
wrong medium type
operation canceled
required key not available
key has expired
key has been revoked
key was rejected by service
owner died
state not recoverable
operation not possible due to RF-kill
memory page has hardware error
`;

let texts: string[] | undefined;

export function errnoText(errno: number): string {
  return (texts ??= TEXTS.split("\n"))[errno] || `unknown error ${errno}`;
}

/** A system call the kernel refused. The message reads `open /run/x: no such file or directory`. */
export class SyscallError extends Error {
  constructor(readonly call: string, readonly errno: number, readonly subject = "") {
    super(`${call}${subject === "" ? "" : ` ${subject}`}: ${errnoText(errno)}`);
    this.name = "SyscallError";
  }
}

export function isErrno(error: unknown, ...errnos: number[]): error is SyscallError {
  return error instanceof SyscallError && errnos.includes(error.errno);
}
