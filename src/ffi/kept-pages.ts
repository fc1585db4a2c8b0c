/**
 * Keeps pages of files in memory, such as of the program. Where memory is short, the kernel would take those that have not
 * been used for a while, and the next use would wait for the disk. What a process has written only swap takes.
 */
import { readTextFile } from "./files.ts";
import { mlock2 } from "./system-calls.ts";

const MLOCK_ONFAULT = 1;

/** All that this process has used or uses later, of the files that it has mapped by now. Without the right to, none. */
export function keepUsedPages(): void {
  // proc_pid_maps(5): private, and with an inode.
  const mappings = (readTextFile("/proc/self/maps") ?? "").matchAll(/^([0-9a-f]+)-([0-9a-f]+) ...p \S+ \S+ [1-9]/gm);
  for (const [, from, to] of mappings) {
    const start = parseInt(from!, 16);
    mlock2(start, parseInt(to!, 16) - start, MLOCK_ONFAULT);
  }
}
