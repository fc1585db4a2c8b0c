/** The clock that all processes of one boot share, and nobody sets (clock_gettime(2)). */
import { bind, check } from "./libc.ts";

const CLOCK_BOOTTIME = 7;

const bindClock = () => bind({ clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
let symbols: ReturnType<typeof bindClock> | undefined;

/** Whole seconds since the machine started, those it slept included. */
export function secondsSinceBoot(): number {
  symbols ??= bindClock();
  const timespec = new Uint8Array(16);
  check("clock_gettime", symbols.clock_gettime(CLOCK_BOOTTIME, timespec));
  return new DataView(timespec.buffer).getUint32(0, true);
}
