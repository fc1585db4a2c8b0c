/** Seconds since boot: a clock that all processes share and nobody can set (clock_gettime(2)), and an alarm on it. */
import { bindLater, check } from "./libc.ts";

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

function read(): DataView {
  const timespec = new Uint8Array(16);
  check("clock_gettime", c().clock_gettime(CLOCK_BOOTTIME, timespec));
  return new DataView(timespec.buffer);
}
