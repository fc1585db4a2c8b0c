/** Whether a process sleeps: who waits for a lock looks again and again, with pauses (src/process/lock.ts). */
import { readFileSync } from "node:fs";

/** False when it has ended. */
export function isAsleep(pid: number): boolean {
  try {
    return /nanosleep/.test(readFileSync(`/proc/${pid}/wchan`, "utf8"));
  } catch {
    return false;
  }
}
