/** How much memory a process has: proc_pid_status(5). */
import { readTextFile } from "./files.ts";

/** `all` includes pages of files, which processes of the same program share. Zero when there is no such process. */
export function memoryKib(pid: number | "self"): { all: number; own: number } {
  const status = readTextFile(`/proc/${pid}/status`) ?? "";
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, "m").exec(status)?.[1] ?? 0);
  return { all: kib("VmRSS"), own: kib("RssAnon") };
}
