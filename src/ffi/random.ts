/** Random values from getrandom(2): the first use of `Math` costs a process more than this call. */
import { formatMac } from "../net/mac.ts";
import { retrying } from "./libc.ts";
import { getrandom } from "./system-calls.ts";

/** At most 256, which getrandom(2) never delivers in parts. */
export function randomBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  retrying("getrandom", () => getrandom(bytes, count));
  return bytes;
}

/** A unicast, locally administered address, as the kernel picks one for a virtual link. */
export function randomMac(): string {
  const bytes = randomBytes(6);
  bytes[0] = (bytes[0]! & 0xfe) | 0x02;
  return formatMac(bytes);
}
