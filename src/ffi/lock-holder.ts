/** For an error about a lock that does not become free: which file, and who holds it. */
import { linkTarget } from "./directory-entries.ts";
import { identify, readTextFile } from "./files.ts";

export function fileOf(fd: number): string {
  return linkTarget(`/proc/thread-self/fd/${fd}`) ?? `descriptor ${fd}`;
}

/** As proc_locks(5) tells, which knows it only of locks on whole files. */
export function holderOf(fd: number): string {
  try {
    const [device, high, low] = identify(fd).id.split(":").map(Number) as [number, number, number];
    const hex = (number: number) => number.toString(16).padStart(2, "0");
    const file = `${hex(device % 2 ** 32)}:${hex(Math.floor(device / 2 ** 32))}:${high * 2 ** 32 + low}`;
    const [, pid] = new RegExp(`: FLOCK .* ([0-9]+) ${file} `).exec(readTextFile("/proc/locks") ?? "") ?? [];
    if (pid !== undefined) return `process ${pid} (${readTextFile(`/proc/${pid}/comm`)?.trimEnd() ?? "ended"})`;
  } catch {
    // Hidden, for example.
  }
  return "another process";
}
