/** How long to wait for something that may never happen, such as the answer to a packet that a firewall drops. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** One second on an idle machine, and one per runnable process and processor on a busy one. */
export function patienceMs(): number {
  const runnable = Number(readFileSync("/proc/loadavg", "utf8").match(/(\d+)\/\d+/)![1]);
  return 1000 * Math.max(1, runnable / availableParallelism());
}
