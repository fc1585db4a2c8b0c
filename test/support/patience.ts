/** How long to wait for what may never come, such as the answer to a packet that a firewall drops. */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** A second of an idle machine: as many seconds as there are processes to each processor. */
export function patienceMs(): number {
  const runnable = Number(readFileSync("/proc/loadavg", "utf8").match(/(\d+)\/\d+/)![1]);
  return 1000 * Math.max(1, runnable / availableParallelism());
}
