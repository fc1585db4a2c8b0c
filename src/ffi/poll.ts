/** Waiting for descriptors: poll(2), epoll(7). */
import { EINTR, SyscallError } from "./errno.ts";
import { bind, check, lastErrno, libc, retrying } from "./libc.ts";

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
  const limitMs = timeoutMs === Infinity ? -1 : Math.ceil(timeoutMs);
  const count = libc.poll(new Uint8Array(table.buffer), wanted.length, limitMs);
  if (count < 0 && lastErrno() !== EINTR) throw new SyscallError("poll", lastErrno());
  return new Set(wanted.filter((_, index) => table.getInt16(index * 8 + 6, true) !== 0).map((w) => w.fd));
}

const EPOLL_CLOEXEC = 0o2000000, EPOLL_CTL_ADD = 1, EPOLLIN = 0x1, EPOLLEXCLUSIVE = 0x10000000;
/** struct epoll_event is packed on x86-64 only. */
const DATA_AT = process.arch === "x64" ? 4 : 8, EVENT_BYTES = DATA_AT + 8;

/**
 * Waiting for what other processes wait for, too: the kernel wakes one of them, and the same one as long as it waits again
 * in time (epoll(7), EPOLLEXCLUSIVE). So the others sleep on, and one keeps its caches warm.
 */
export class SharedWait {
  private readonly symbols = bind({
    epoll_create1: { args: ["i32"], returns: "i32" },
    epoll_ctl: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" },
    epoll_wait: { args: ["i32", "ptr", "i32", "i32"], returns: "i32" },
  });
  private readonly fd = check("epoll_create1", this.symbols.epoll_create1(EPOLL_CLOEXEC));
  private readonly event = new Uint8Array(2 * EVENT_BYTES);
  private readonly view = new DataView(this.event.buffer);

  /** `own` comes first when both are ready. */
  constructor(shared: number, private readonly own: number) {
    this.add(shared, EPOLLIN | EPOLLEXCLUSIVE);
    this.add(own, EPOLLIN);
  }

  private add(fd: number, events: number): void {
    this.view.setUint32(0, events, true);
    this.view.setInt32(DATA_AT, fd, true);
    check("epoll_ctl", this.symbols.epoll_ctl(this.fd, EPOLL_CTL_ADD, fd, this.event));
  }

  /** The descriptor that is ready, or whose other end is closed; undefined when none is, and nobody waits. */
  ready(): number | undefined {
    return this.within(0);
  }

  /** Waits until one is; undefined when none is in time. */
  within(timeoutMs: number): number | undefined {
    return this.among(retrying("epoll_wait", () => this.symbols.epoll_wait(this.fd, this.event, 2, timeoutMs)));
  }

  /** Waits until one is. */
  next(): number {
    return this.among(retrying("epoll_wait", () => this.symbols.epoll_wait(this.fd, this.event, 2, -1)))!;
  }

  private among(count: number): number | undefined {
    if (count === 0) return undefined;
    return count > 1 ? this.own : this.view.getInt32(DATA_AT, true);
  }
}
