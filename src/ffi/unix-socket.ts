/** Stream sockets between processes of a host (unix(7)). */
import { setNonblocking } from "./descriptors.ts";
import { EADDRINUSE, EAGAIN, ECONNABORTED, ECONNREFUSED, EINTR, EINVAL, ETIMEDOUT, SyscallError } from "./errno.ts";
import { closeFile, identify, isSocket, removeFile } from "./files.ts";
import { bind, check, lastErrno, libc } from "./libc.ts";

const AF_UNIX = 1, SOCK_STREAM = 1, SOCK_CLOEXEC = 0o2000000, SOCK_NONBLOCK = 0o4000;
const SOL_SOCKET = 1, SO_SNDTIMEO = 21;
const BACKLOG = 1024, LONGEST_PATH = 107;
/** Only ends the wait for what hangs. */
const PATIENCE_MS = 25_000;

const bindSockets = () =>
  bind({
    listen: { args: ["i32", "i32"], returns: "i32" },
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    accept4: { args: ["i32", "ptr", "ptr", "i32"], returns: "i32" },
  });
let symbols: ReturnType<typeof bindSockets> | undefined;
const c = () => (symbols ??= bindSockets());

/** struct sockaddr_un */
export function addressOf(path: string): Uint8Array {
  const text = new TextEncoder().encode(path), address = new Uint8Array(2 + text.length + 1);
  if (text.length > LONGEST_PATH) {
    throw new SyscallError("socket", EINVAL, `${path}: longer than ${LONGEST_PATH} bytes`);
  }
  address[0] = AF_UNIX;
  address.set(text, 2);
  return address;
}

function newSocket(): number {
  return check("socket", libc.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/** Limits how long connecting waits for a listener that accepts nobody, and sending for a reader. */
export function limitSending(fd: number, patienceMs: number): void {
  const timeval = new BigInt64Array([BigInt(Math.floor(patienceMs / 1000)), BigInt((patienceMs % 1000) * 1000)]);
  check("setsockopt SO_SNDTIMEO", libc.setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, timeval, 16));
}

/** Throws SyscallError: ENOENT or ECONNREFUSED when nobody listens, ETIMEDOUT when the listener accepts nobody. */
export function connectTo(path: string, patienceMs = PATIENCE_MS): number {
  const fd = newSocket(), address = addressOf(path);
  limitSending(fd, patienceMs);
  for (;;) {
    if (c().connect(fd, address, address.length) === 0) return fd;
    const errno = lastErrno();
    if (errno === EINTR) continue;
    closeFile(fd);
    throw new SyscallError("connect", errno === EAGAIN ? ETIMEDOUT : errno, path);
  }
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

/** Takes the place of a socket that nobody listens on any more. Throws EADDRINUSE when somebody does. */
export function listenAt(path: string): number {
  const fd = newSocket(), address = addressOf(path);
  try {
    setNonblocking(fd);
    if (libc.bind(fd, address, address.length) !== 0) {
      const errno = lastErrno();
      if (errno !== EADDRINUSE || !isStale(path)) throw new SyscallError("bind", errno, path);
      removeFile(path);
      check("bind", libc.bind(fd, address, address.length), path);
    }
    listenOn(fd, path);
    return fd;
  } catch (error) {
    closeFile(fd);
    throw error;
  }
}

/** On a socket that has its name already. */
export function listenOn(fd: number, path: string, backlog = BACKLOG): void {
  check("listen", c().listen(fd, backlog), path);
}

/** The next connection, not waiting for what it sends; undefined when there is none, or the other end is gone. */
export function acceptNext(listening: number): number | undefined {
  const fd = c().accept4(listening, null, null, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) return fd;
  const errno = lastErrno();
  if (errno === EAGAIN || errno === EINTR || errno === ECONNABORTED) return undefined;
  throw new SyscallError("accept4", errno);
}
