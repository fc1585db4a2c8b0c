/** Sockets between processes of a host (unix(7)): streams, unless another type is given. */
import { EADDRINUSE, EAGAIN, ECONNABORTED, ECONNREFUSED, EINTR, EINVAL, SyscallError } from "../errno.ts";
import { closeFile, identify, isSocket, removeFile } from "../files.ts";
import { bindLater, check, lastErrno, libc, utf8 } from "../libc.ts";
import { AF_UNIX, connectWithin, openSocket, preparing, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM } from "./socket.ts";

const BACKLOG = 1024;
/** In bytes (unix(7), "sun_path"). */
export const LONGEST_PATH = 107;
/** This only ends the wait for what hangs. */
const PATIENCE_MS = 25_000;

const c = bindLater({
  listen: { args: ["i32", "i32"], returns: "i32" },
  accept4: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" },
});

/** struct sockaddr_un. A name that begins with NUL is in no directory ("Abstract sockets"), and ends with the address. */
export function unixAddress(name: string): Uint8Array {
  const text = utf8(name), address = new Uint8Array(2 + text.length + (text[0] === 0 ? 0 : 1));
  if (text.length > LONGEST_PATH) {
    throw new SyscallError("socket", EINVAL, `${name}: longer than ${LONGEST_PATH} bytes`);
  }
  address[0] = AF_UNIX;
  address.set(text, 2);
  return address;
}

/**
 * Throws SyscallError: ENOENT or ECONNREFUSED when nobody listens, ETIMEDOUT when the listener accepts nobody. Sending has
 * the same limit afterwards. `subject` is what errors call the other end.
 */
export function connectTo(name: string, patienceMs = PATIENCE_MS, type = SOCK_STREAM, subject = name): number {
  const address = unixAddress(name);
  return preparing(openSocket("socket", AF_UNIX, type), (fd) => {
    connectWithin(fd, address, patienceMs, subject);
    return fd;
  });
}

/** Whether nobody has listened there since its process ended. Connecting to any other file is refused, too. */
function isStale(path: string): boolean {
  if (!isSocket(identify(path, false))) return false;
  try {
    closeFile(connectTo(path));
    return false;
  } catch (error) {
    return error instanceof SyscallError && error.errno === ECONNREFUSED;
  }
}

/** Takes the place of a socket that nobody listens on any more. Throws EADDRINUSE when the name is somebody's. */
export function listenAt(path: string, type = SOCK_STREAM, isFree = isStale): number {
  const address = unixAddress(path);
  return preparing(openSocket("socket", AF_UNIX, type | SOCK_NONBLOCK), (fd) => {
    if (libc.bind(fd, address, address.length) !== 0) {
      const errno = lastErrno();
      if (errno !== EADDRINUSE || !isFree(path)) throw new SyscallError("bind", errno, path);
      removeFile(path);
      check("bind", libc.bind(fd, address, address.length), path);
    }
    listenOn(fd, path);
    return fd;
  });
}

/** For a socket that has its name already. */
export function listenOn(fd: number, path: string, backlog = BACKLOG): void {
  check("listen", c().listen(fd, backlog), path);
}

/** The next connection, not waiting for what it sends; undefined when there is none, or the other end is gone. */
export function acceptNext(listening: number, flags = SOCK_NONBLOCK): number | undefined {
  const fd = c().accept4(listening, null, null, SOCK_CLOEXEC | flags);
  if (fd >= 0) return fd;
  const errno = lastErrno();
  if (errno === EAGAIN || errno === EINTR || errno === ECONNABORTED) return undefined;
  throw new SyscallError("accept4", errno);
}
