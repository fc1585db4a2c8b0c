/**
 * The process that made a connection of unix(7), held: what is read of it is its own. Its number alone may be another's
 * when somebody gets to look: the process that connected may have ended long before.
 */
import { SyscallError } from "../errno.ts";
import { lastErrno } from "../libc.ts";
import { OtherProcess } from "../other-process.ts";
import { ProcessFiles } from "../process-files.ts";
import { getOption } from "./socket.ts";

/** The other end, as it was when it connected or began to listen; process 0 is in a namespace that we do not see. */
export function peerOf(socket: number): { pid: number; uid: number } | undefined {
  const credentials = new Int32Array(3);
  if (!getOption(socket, "SO_PEERCRED", credentials)) return undefined;
  return { pid: credentials[0]!, uid: credentials[1]! };
}

export class Peer {
  private constructor(
    readonly pid: number,
    readonly uid: number,
    readonly files: ProcessFiles,
    private readonly process: OtherProcess | undefined,
  ) {}

  /** Throws SyscallError when the process has ended, or is in a process namespace that we do not see. */
  static of(socket: number): Peer {
    const peer = peerOf(socket);
    if (peer === undefined) throw new SyscallError("getsockopt SO_PEERCRED", lastErrno());
    const process = OtherProcess.atOtherEnd(socket, peer.pid);
    try {
      return new Peer(peer.pid, peer.uid, new ProcessFiles(peer.pid), process);
    } catch (error) {
      process?.close();
      throw error;
    }
  }

  /** If not, `files` are those of the process that has the number now (before Linux 6.5). */
  get isHeld(): boolean {
    return this.process !== undefined;
  }

  /** While the process has not ended, nobody else has had its number: what was read of it until now is true of it. */
  get hasEnded(): boolean {
    return this.process?.hasEnded === true;
  }

  close(): void {
    this.files.close();
    this.process?.close();
  }
}
