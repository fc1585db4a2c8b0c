/** Whether a person reads or types, and texts for one: control characters in names of others would be obeyed. */
import { libc } from "./libc.ts";

const TCGETS = 0x5401;

/** isatty(3) */
export function isTerminal(fd: number): boolean {
  return libc.ioctl(fd, TCGETS, new Uint8Array(64)) === 0;
}
