/** Work done while holding an open file for oneself (flock(2)). */
import { EAGAIN, EINTR, SyscallError } from "./errno.ts";
import { bind, check, lastErrno, libc } from "./libc.ts";

const LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8;
const PATIENCE_MS = 10_000;
const FIRST_PAUSE_US = 100, LONGEST_PAUSE_US = 10_000;

/** Gives up after a while: whoever may open the file may hold it for ever. */
export function whileLocked<T>(fd: number, what: string, work: () => T): T {
  const deadline = Date.now() + PATIENCE_MS;
  for (let pauseUs = FIRST_PAUSE_US; libc.flock(fd, LOCK_EX | LOCK_NB) !== 0;) {
    const errno = lastErrno();
    if (errno !== EAGAIN && errno !== EINTR) throw new SyscallError("flock", errno, what);
    if (Date.now() > deadline) throw new SyscallError("flock", EAGAIN, `${what}: held by another process`);
    bind({ usleep: { args: ["u32"], returns: "i32" } }).usleep(pauseUs);
    pauseUs = Math.min(pauseUs * 2, LONGEST_PAUSE_US);
  }
  try {
    return work();
  } finally {
    check("flock", libc.flock(fd, LOCK_UN), what);
  }
}
