/**
 * A process that stays has nothing of the one that began it: session, descriptors, directory, ignored signals, priorities,
 * scheduling, processors, personality.
 */
import { namesIn, O_WRONLY, openFile, whileOpen, writeAll } from "./files.ts";
import { bind, utf8 } from "./libc.ts";
import { FFIType } from "./native.ts";
import { ioprio_set, sched_setscheduler } from "./system-calls.ts";
import { keepUmask } from "./umask.ts";

const LAST_SIGNAL = 64, PRIO_PROCESS = 0, IOPRIO_WHO_PROCESS = 1, SCHED_OTHER = 0, PER_LINUX = 0;
const F_SETFD = 2, FD_CLOEXEC = 1, MOST_PROCESSORS = 8192;

/** What this process executes next has only the descriptors up to `lastKept`, and the processors of process 1. */
export function becomeIndependent(lastKept: number): void {
  const c = bind({
    setsid: { args: [], returns: "i32" },
    fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
    signal: { args: ["i32", "ptr"], returns: "ptr" },
    setpriority: { args: ["i32", "u32", "i32"], returns: "i32" },
    sched_getaffinity: { args: ["i32", "usize", "ptr"], returns: "i32" },
    sched_setaffinity: { args: ["i32", "usize", "ptr"], returns: "i32" },
    personality: { args: [FFIType.u64_fast], returns: "i32" },
  });
  c.setsid();
  // What is ignored stays ignored over execve(2).
  for (let signal = 1; signal <= LAST_SIGNAL; signal++) c.signal(signal, null);
  sched_setscheduler(0, SCHED_OTHER, new Int32Array(1));
  c.setpriority(PRIO_PROCESS, 0, 0);
  ioprio_set(IOPRIO_WHO_PROCESS, 0, 0);
  const processors = new Uint8Array(MOST_PROCESSORS / 8);
  if (c.sched_getaffinity(1, processors.length, processors) >= 0) {
    c.sched_setaffinity(0, processors.length, processors);
  }
  c.personality(PER_LINUX);
  keepUmask();
  for (const name of namesIn("/proc/self/fd")) {
    if (Number(name) > lastKept) c.fcntl(Number(name), F_SETFD, FD_CLOEXEC);
  }
  process.chdir("/");
  try {
    whileOpen(openFile("/proc/self/oom_score_adj", O_WRONLY), (fd) => writeAll(fd, utf8("0")));
  } catch {
    // In a container whose runtime has raised it, it stays so.
  }
}
