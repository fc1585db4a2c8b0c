/** Whether a process sleeps: who waits for a lock looks again and again, with pauses (src/process/lock.ts). */
import { textOf } from "./if-there.ts";

/** False when it has ended. */
export function isAsleep(pid: number): boolean {
  return textOf(`/proc/${pid}/wchan`).includes("nanosleep");
}
