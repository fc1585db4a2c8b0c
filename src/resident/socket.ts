/** The socket that launchers look for. */
import { setNonblocking } from "../ffi/descriptors.ts";
import { EACCES, isErrno } from "../ffi/errno.ts";
import { closeFile, idAt, makeDirectories, readTextFile, removeFile } from "../ffi/files.ts";
import { bind, check, libc } from "../ffi/libc.ts";
import { judgeStateDirectory } from "../ffi/state-file.ts";
import { addressOf } from "../ffi/unix-socket.ts";

export const SOCKET_DIRECTORY = "/run/patchbay";
export const SOCKET_PATH = `${SOCKET_DIRECTORY}/serve.sock`;
const AF_UNIX = 1, SOCK_SEQPACKET = 5, SOCK_CLOEXEC = 0o2000000, SOCK_NONBLOCK = 0o4000;
const SOL_SOCKET = 1, SO_TYPE = 3, SO_PEERCRED = 17;
const BACKLOG = 1024;

const symbols = bind({
  listen: { args: ["i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
});

export class ServingSocket {
  private constructor(
    readonly fd: number,
    /** Otherwise a service manager made it, which also removes it. */
    readonly isOwn: boolean,
    private readonly id: string | undefined,
  ) {}

  /** Throws when another resident listens there. Whatever else has the name is replaced. */
  static listen(): ServingSocket {
    const other = whoListens();
    if (other !== undefined) throw anotherResident(other);
    makeDirectories(SOCKET_DIRECTORY, 0o700);
    judgeStateDirectory(SOCKET_DIRECTORY);
    const fd = newSocket(), address = addressOf(SOCKET_PATH);
    try {
      removeFile(SOCKET_PATH);
      check("bind", libc.bind(fd, address, address.length), SOCKET_PATH);
      check("listen", symbols.listen(fd, BACKLOG), SOCKET_PATH);
      // Two that start at once may remove each other's.
      const id = idAt(SOCKET_PATH), listener = whoListens();
      if (listener !== process.pid || idAt(SOCKET_PATH) !== id) throw anotherResident(listener);
      return new ServingSocket(fd, true, id);
    } catch (error) {
      closeFile(fd);
      throw error;
    }
  }

  /** A socket that somebody else made, or we before we became what we are now. */
  static adopt(fd: number, isOwn: boolean): ServingSocket {
    const type = new Int32Array(1);
    check(
      "getsockopt",
      libc.getsockopt(fd, SOL_SOCKET, SO_TYPE, type, Int32Array.of(4)),
      "the socket that was given",
    );
    if (type[0] !== SOCK_SEQPACKET) throw new Error("the socket that was given is not of the type SOCK_SEQPACKET");
    setNonblocking(fd);
    // From now on, whoever connects learns our process id: `whoListens`.
    check("listen", symbols.listen(fd, BACKLOG), "the socket that was given");
    return new ServingSocket(fd, isOwn, ownPlace());
  }

  isInPlace(): boolean {
    return this.id !== undefined && idAt(SOCKET_PATH) === this.id;
  }

  /** Those who wait on it and are served by nobody run their calls by themselves. */
  close(): void {
    if (this.isOwn && this.isInPlace()) removeFile(SOCKET_PATH);
    closeFile(this.fd);
  }
}

/** What has the name, unless another process listens there: one that started with us may have taken our place since. */
function ownPlace(): string | undefined {
  const id = idAt(SOCKET_PATH), listener = whoListens();
  const isOwn = listener === undefined || listener === process.pid;
  return isOwn && idAt(SOCKET_PATH) === id ? id : undefined;
}

/**
 * The process that listens there, or undefined; 0 when it is in a process namespace that we do not see. One that has ended
 * does not listen, though its workers hold the socket until their calls end.
 */
export function whoListens(): number | undefined {
  const fd = connected();
  if (fd === undefined) return undefined;
  try {
    const credentials = new Int32Array(3);
    check("getsockopt", libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, Int32Array.of(12)));
    const pid = credentials[0]!;
    return pid !== 0 && hasEnded(pid) ? undefined : pid;
  } finally {
    closeFile(fd);
  }
}

/** Undefined when nobody listens. Throws when this user may not ask. */
function connected(): number | undefined {
  const fd = newSocket(), address = addressOf(SOCKET_PATH);
  try {
    check("connect", symbols.connect(fd, address, address.length), SOCKET_PATH);
    return fd;
  } catch (error) {
    closeFile(fd);
    if (isErrno(error, EACCES)) throw error;
    return undefined;
  }
}

function hasEnded(pid: number): boolean {
  const text = readTextFile(`/proc/${pid}/stat`);
  // A zombie has ended; nobody has asked how.
  return text === undefined || text[text.lastIndexOf(")") + 2] === "Z";
}

function anotherResident(pid: number | undefined): Error {
  return new Error(`another resident (process ${pid ?? "unknown"}) listens on ${SOCKET_PATH}`);
}

function newSocket(): number {
  return check("socket", libc.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}
