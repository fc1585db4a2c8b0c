/**
 * A process that is no child of ours, by descriptor (pidfd_open(2), Linux 5.3): its number may be another's a moment later,
 * the descriptor never is.
 */
import { EINVAL, ENOENT, ENOPROTOOPT, ESRCH, SyscallError } from "./errno.ts";
import { closeFile } from "./files.ts";
import { bindLater, lastErrno } from "./libc.ts";
import { FFIType } from "./native.ts";
import { poll, POLLIN } from "./poll.ts";
import { getOption } from "./socket/socket.ts";
import { openPidfd } from "./spawn.ts";

const SYS_pidfd_send_signal = 424; // the same number on every architecture

const c = bindLater({
  syscall: {
    args: [FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast],
    returns: FFIType.i64_fast,
  },
});

let canHoldPeers = true;

export class OtherProcess {
  private constructor(readonly pid: number, private readonly fd: number) {}

  /**
   * Undefined when there is none. What /proc says of the number afterwards is said of this process if it has not ended
   * since: as long as it has not, nobody else gets its number.
   */
  static open(pid: number): OtherProcess | undefined {
    const fd = openPidfd(pid);
    if (fd >= 0) return new OtherProcess(pid, fd);
    const errno = lastErrno();
    // A thread that is not the first of its process has a number, too.
    if (errno === ESRCH || errno === EINVAL || errno === ENOENT) return undefined;
    throw new SyscallError("pidfd_open", errno, `process ${pid}`);
  }

  /**
   * The one that made the connection, which has the number or had it. Undefined before Linux 6.5; throws SyscallError when
   * it has ended, which not every kernel tells.
   */
  static atOtherEnd(socket: number, pid: number): OtherProcess | undefined {
    if (!canHoldPeers) return undefined;
    const fd = new Int32Array(1);
    if (getOption(socket, "SO_PEERPIDFD", fd)) return new OtherProcess(pid, fd[0]!);
    const errno = lastErrno();
    if (errno !== ENOPROTOOPT) throw new SyscallError("getsockopt SO_PEERPIDFD", errno, `process ${pid}`);
    canHoldPeers = false;
    return undefined;
  }

  get hasEnded(): boolean {
    return this.endsWithin(0);
  }

  endsWithin(ms: number): boolean {
    return poll([{ fd: this.fd, events: POLLIN }], ms).size > 0;
  }

  /** Returns false when it has ended. */
  signal(number: number): boolean {
    if (Number(c().syscall(SYS_pidfd_send_signal, this.fd, number, 0, 0)) === 0) return true;
    if (lastErrno() === ESRCH) return false;
    throw new SyscallError("pidfd_send_signal", lastErrno(), `process ${this.pid}`);
  }

  close(): void {
    closeFile(this.fd);
  }
}
