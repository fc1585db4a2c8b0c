/** Whether a process waits for a lock on a file (flock(2), fcntl(2)), as the kernel names what it waits in. */
import { readFileSync } from "node:fs";

/** False when it has ended. */
export function waitsForLock(pid: number): boolean {
  try {
    return /lock|setlk/.test(readFileSync(`/proc/${pid}/wchan`, "utf8"));
  } catch {
    return false;
  }
}
