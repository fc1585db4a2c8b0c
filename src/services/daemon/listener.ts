/** A socket at a path on which a daemon listens: its own, or one of a service manager (sd_listen_fds(3)). */
import { moveUp, setNonblocking } from "../../ffi/descriptors.ts";
import { EACCES, ETIMEDOUT, isErrno, SyscallError } from "../../ffi/errno.ts";
import { variable } from "../../ffi/environment.ts";
import { closeFile, idAt, readTextFile, removeFile } from "../../ffi/files.ts";
import { lastErrno } from "../../ffi/libc.ts";
import { peerOf } from "../../ffi/socket/peer.ts";
import { getOption, SOCK_NONBLOCK, SOCK_SEQPACKET } from "../../ffi/socket/socket.ts";
import { connectTo, listenAt, listenOn } from "../../ffi/socket/unix.ts";

export const FIRST_HANDED_OVER = 3;
export const OUT_OF_SIGHT = 0;
/** LISTEN_FDNAMES, where a daemon hands its listener to the program that it executes. */
const OWN = "patchbay-own", FROM_MANAGER = "patchbay-given";

export class Listener {
  private constructor(
    readonly fd: number,
    private readonly path: string,
    /** A socket that is not ours was made by a service manager, which also removes it. */
    readonly isOwn: boolean,
    private readonly id: string | undefined,
  ) {}

  /** See `listenAt`. */
  static open(path: string, type: number, isFree?: () => boolean): Listener {
    return new Listener(listenAt(path, type, isFree), path, true, idAt(path));
  }

  /** Returns the first socket that was handed over, or undefined. */
  static handedOver(path: string, type: number): Listener | undefined {
    if (countHandedOver() === 0) return undefined;
    const fd = moveUp(FIRST_HANDED_OVER), given = "the socket that was given", actual = new Int32Array(1);
    if (!getOption(fd, "SO_TYPE", actual)) throw new SyscallError("getsockopt", lastErrno(), given);
    if (actual[0] !== type) {
      const name = type === SOCK_SEQPACKET ? "SOCK_SEQPACKET" : "SOCK_STREAM";
      throw new Error(`${given} is not of the type ${name}`);
    }
    setNonblocking(fd);
    // From now on, a client that connects learns our process id: `whoListens`.
    listenOn(fd, given);
    return new Listener(fd, path, variable("LISTEN_FDNAMES") === OWN, placeOf(path, type));
  }

  /** Whether those who connect to the path come here. */
  get isInPlace(): boolean {
    return this.id !== undefined && idAt(this.path) === this.id;
  }

  /** Clients that wait to be accepted are told that nobody listens. */
  close(): void {
    if (this.isOwn && this.isInPlace) removeFile(this.path);
    closeFile(this.fd);
  }
}

export function countHandedOver(): number {
  return variable("LISTEN_PID") === String(process.pid) ? Number(variable("LISTEN_FDS")) || 0 : 0;
}

/** The variables by which the program that this process executes finds the listener. */
export function handOver({ isOwn }: Listener): Record<string, string> {
  return { LISTEN_PID: String(process.pid), LISTEN_FDS: "1", LISTEN_FDNAMES: isOwn ? OWN : FROM_MANAGER };
}

/** What has the name, unless another process listens there: a daemon that started with us may have taken our place since. */
function placeOf(path: string, type: number): string | undefined {
  const id = idAt(path), listener = whoListens(path, type);
  // Out of sight is also a socket at which so many wait that no more may, as in the burst that starts a resident.
  const isOurs = !listener || listener === process.pid;
  return isOurs && idAt(path) === id ? id : undefined;
}

/**
 * The process that listens there, or undefined; OUT_OF_SIGHT when it is in a process namespace that we do not see, or
 * takes nobody. A process that has ended does not listen, though its children may hold the socket. Throws SyscallError when
 * this user may not connect.
 */
export function whoListens(path: string, type: number): number | undefined {
  let fd: number;
  try {
    fd = connectTo(path, undefined, type | SOCK_NONBLOCK);
  } catch (error) {
    if (isErrno(error, EACCES)) throw error;
    // So many wait that no more may: somebody listens.
    return isErrno(error, ETIMEDOUT) ? OUT_OF_SIGHT : undefined;
  }
  const pid = peerOf(fd)?.pid;
  closeFile(fd);
  return pid && hasEnded(pid) ? undefined : pid;
}

function hasEnded(pid: number): boolean {
  const text = readTextFile(`/proc/${pid}/stat`);
  // A zombie has ended; nobody has asked how.
  return text === undefined || text[text.lastIndexOf(")") + 2] === "Z";
}
