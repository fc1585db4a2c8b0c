/**
 * A process that stays has nothing of the one that began it: session, descriptors, directory, ignored signals, priorities,
 * scheduling, personality.
 */
import { closeFile, namesIn, O_WRONLY, openFile, writeAll } from "./files.ts";
import { bind, utf8 } from "./libc.ts";
import { FFIType } from "./native.ts";

const LAST_SIGNAL = 64, PRIO_PROCESS = 0, SCHED_OTHER = 0, PER_LINUX = 0;
const F_SETFD = 2, FD_CLOEXEC = 1;

/** What this process executes next has only the descriptors up to `lastKept`. */
export function becomeIndependent(lastKept: number): void {
  const c = bind({
    setsid: { args: [], returns: "i32" },
    fcntl: { args: ["i32", "i32", "i32"], returns: "i32" },
    signal: { args: ["i32", "ptr"], returns: "ptr" },
    setpriority: { args: ["i32", "u32", "i32"], returns: "i32" },
    sched_setscheduler: { args: ["i32", "i32", "ptr"], returns: "i32" },
    personality: { args: [FFIType.u64_fast], returns: "i32" },
  });
  c.setsid();
  // What is ignored stays ignored over execve(2).
  for (let signal = 1; signal <= LAST_SIGNAL; signal++) c.signal(signal, null);
  c.sched_setscheduler(0, SCHED_OTHER, new Int32Array(1));
  c.setpriority(PRIO_PROCESS, 0, 0);
  c.personality(PER_LINUX);
  for (const name of namesIn("/proc/self/fd")) {
    if (Number(name) > lastKept) c.fcntl(Number(name), F_SETFD, FD_CLOEXEC);
  }
  process.chdir("/");
  const score = openFile("/proc/self/oom_score_adj", O_WRONLY);
  try {
    writeAll(score, utf8("0"));
  } finally {
    closeFile(score);
  }
}
