/** Seconds since boot: a clock that all processes share and nobody can set (clock_gettime(2)), and an alarm on it. */
import { bind, bindLater, check, libc } from "./libc.ts";

const CLOCK_BOOTTIME = 7;

const c = bindLater({ clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });

/** Whole seconds, including the time the machine was suspended. */
export function secondsSinceBoot(): number {
  return read().getUint32(0, true);
}

/** The same with its fraction. */
export function preciseSecondsSinceBoot(): number {
  const timespec = read();
  return timespec.getUint32(0, true) + timespec.getUint32(8, true) / 1e9;
}

/** In 32 bits: again from 0 after 49 days. */
export function millisecondsSinceBoot(): number {
  const timespec = read();
  return (timespec.getUint32(0, true) * 1000 + Math.floor(timespec.getUint32(8, true) / 1e6)) >>> 0;
}

function read(): DataView {
  const timespec = new Uint8Array(16);
  check("clock_gettime", c().clock_gettime(CLOCK_BOOTTIME, timespec));
  return new DataView(timespec.buffer);
}

const TFD_NONBLOCK = 0o4000, TFD_CLOEXEC = 0o2000000, TFD_TIMER_ABSTIME = 1;

/** Suspended time counts, too: after the machine wakes, what was due is due at once (timerfd_create(2)). */
export class Alarm {
  private readonly symbols = bind({
    timerfd_create: { args: ["i32", "i32"], returns: "i32" },
    timerfd_settime: { args: ["i32", "i32", "ptr", "ptr"], returns: "i32" },
  });
  /** Readable when it has gone off. */
  readonly fd = check("timerfd_create", this.symbols.timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  private at = Infinity;

  /** In seconds since boot; `Infinity`: never. */
  set(at: number): void {
    if (at === this.at) return;
    this.at = at;
    // struct itimerspec: interval, then the time. A time of 0 would switch it off.
    const seconds = at === Infinity ? 0 : Math.floor(at), nanoseconds = at === Infinity ? 0 : (at - seconds) * 1e9;
    const value = new BigInt64Array([0n, 0n, BigInt(seconds), BigInt(Math.ceil(nanoseconds) % 1e9)]);
    check("timerfd_settime", this.symbols.timerfd_settime(this.fd, TFD_TIMER_ABSTIME, value, null));
  }

  /** After it has gone off. */
  silence(): void {
    libc.read(this.fd, new Uint8Array(8), 8);
    this.at = NaN;
  }
}
