/** Waiting for descriptors: poll(2), epoll(7). */
import { EINTR, SyscallError } from "./errno.ts";
import { lastErrno, libc } from "./libc.ts";

export const POLLIN = 0x1;
export const POLLOUT = 0x4;

/**
 * The descriptors that are ready, or whose other end is closed; none after a signal, and none in time unless `timeoutMs` is
 * negative or Infinity. Negative descriptors are ignored.
 */
export function poll(wanted: readonly { fd: number; events: number }[], timeoutMs: number): Set<number> {
  const table = new DataView(new ArrayBuffer(wanted.length * 8)); // struct pollfd
  wanted.forEach(({ fd, events }, index) => {
    table.setInt32(index * 8, fd, true);
    table.setInt16(index * 8 + 4, events, true);
  });
  const count = libc.poll(
    new Uint8Array(table.buffer),
    wanted.length,
    timeoutMs === Infinity ? -1 : Math.ceil(timeoutMs),
  );
  if (count < 0 && lastErrno() !== EINTR) throw new SyscallError("poll", lastErrno());
  return new Set(
    wanted.filter((_, index) => count > 0 && table.getInt16(index * 8 + 6, true) !== 0).map((w) => w.fd),
  );
}
