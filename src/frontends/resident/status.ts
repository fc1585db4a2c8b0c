/**
 * `patchbay serve --status`: what the resident is doing, from what the kernel tells about its processes and from its board.
 * It asks no process: neither busy workers nor a parent that tries a new program delay it.
 */
import { RESIDENT_SOCKET } from "../../process/state-directory.ts";
import { isSwitchedOff, mayStartResident, OFF, SWITCH } from "../../process/resident-by-call.ts";
import { secondsSinceBoot } from "../../ffi/clock.ts";
import { variable } from "../../ffi/environment.ts";
import { EACCES, isErrno } from "../../ffi/errno.ts";
import { exists, placeOf, readTextFile } from "../../ffi/files.ts";
import { memoryKib, ProcessFiles } from "../../ffi/process-files.ts";
import { buildOf, ownBuild } from "../../engine/build.ts";
import { boardOf, DECLINED_BECAUSE, REPLACED, SERVED, TAKEN_BACK } from "./board.ts";
import { type Difference, differenceOf } from "./caller-difference.ts";
import { LOCKED, obstacleOnHost, wasStartedByCall } from "./by-call.ts";
import { refusedUpgradeOf } from "./own-file.ts";
import { OUT_OF_SIGHT } from "../../services/daemon/listener.ts";
import { residentPid } from "./socket.ts";
import { reportOf, type ResidentStatus, type StatusReport, unseen } from "./status-report.ts";

/** A service manager starts the resident when the first caller connects. */
const START_MS = 3000, PAUSE_MS = 50;

export function reportStatus(): StatusReport {
  const report = reportWithoutNote(), setting = variable(SWITCH) ?? "";
  if (setting === "" || isSwitchedOff()) return report;
  const note = `${SWITCH} is ${JSON.stringify(setting)} here, which says nothing: only "${OFF}" does`;
  return { ...report, text: `${report.text}${note}\n` };
}

function reportWithoutNote(): StatusReport {
  try {
    return reportOfResident();
  } catch (error) {
    if (!isErrno(error, EACCES)) throw error;
    return unseen(`uid ${process.geteuid!()} may not connect to ${RESIDENT_SOCKET}`, "Its calls run by themselves.");
  }
}

/** What the caller brings along decides, too: the launcher looks at the variable, and a worker enters the directory. */
function whyAloneHere(): string | undefined {
  if (isSwitchedOff()) return `${SWITCH} is ${OFF} here`;
  const directory = process.cwd();
  try {
    process.chdir(directory);
    return undefined;
  } catch (error) {
    return `no worker can enter the working directory ${directory} (${(error as NodeJS.ErrnoException).code})`;
  }
}

/** Without a status when none can be seen. */
function reportOfResident(): StatusReport {
  const begun = performance.now();
  for (;; Bun.sleepSync(PAUSE_MS)) {
    const pid = residentPid(), isLate = performance.now() - begun > START_MS;
    if (pid === undefined) {
      const obstacle = obstacleOnHost();
      // A resident that starts has its lock, and does not listen yet.
      if (isLate || obstacle !== LOCKED) return noneListens(obstacle);
      continue;
    }
    if (pid === OUT_OF_SIGHT) {
      return notShown(`a process of a process namespace that is not seen here listens on ${RESIDENT_SOCKET}`);
    }
    // Asked first: a process that becomes another build meanwhile makes a new board.
    const build = isThisBuild(pid) ? "this" : "another";
    const counted = countedBy(pid);
    if (counted !== undefined && (counted.workers.length > 0 || isLate)) {
      return reportOf(statusOf(pid, build, counted), whyAloneHere());
    }
    if (isLate) {
      return notShown(
        `process ${pid} listens on ${RESIDENT_SOCKET}; it is no resident, or /proc does not show it here`,
      );
    }
  }
}

function noneListens(obstacle: string | undefined): StatusReport {
  const isPermitted = mayStartResident(), mayStart = isPermitted && obstacle === undefined;
  const next = !isPermitted
    ? "Calls run by themselves. `patchbay serve` starts a resident, or `systemctl restart patchbay.socket` where systemd " +
      "has its units."
    : obstacle === undefined
    ? "Calls run by themselves. The next one starts a resident if its process is like process 1 and has no limits\n" +
      '(docs/resident.md, "Started by a call").'
    : `Calls run by themselves and start no resident: ${obstacle}`;
  return unseen(`no resident listens on ${RESIDENT_SOCKET}`, next, { mayStart });
}

function notShown(problem: string): StatusReport {
  const next = "Calls run by themselves. This command belongs where the resident runs: in its process namespace.";
  return unseen(problem, next);
}

type Counted = NonNullable<ReturnType<typeof boardOf>>;

/** Leaves out workers that have ended. Undefined when the process has no board: it is no resident, or is about to be one. */
function countedBy(pid: number): Counted | undefined {
  const board = boardOf(pid);
  return board && { ...board, workers: board.workers.filter((worker) => exists(`/proc/${worker.pid}`)) };
}

export function statusOf(pid: number, build: ResidentStatus["build"], { parent, workers }: Counted): ResidentStatus {
  const now = secondsSinceBoot(), sum = new Map<string, number>();
  for (const { counts } of [parent, ...workers]) {
    for (const [name, times] of counts) sum.set(name, (sum.get(name) ?? 0) + times);
  }
  const declinesFromHere = differenceFrom(pid);
  const declined = [...sum].filter(([name]) => name.startsWith(DECLINED_BECAUSE));
  return {
    socket: RESIDENT_SOCKET,
    pid,
    build,
    declinesFromHere,
    // In another mount namespace, the same path is another file.
    refusedUpgrade: declinesFromHere === undefined ? refusedUpgradeOf(pid) : undefined,
    isByCall: wasStartedByCall(pid),
    ageSeconds: now - parent.begun,
    served: sum.get(SERVED) ?? 0,
    takenBack: sum.get(TAKEN_BACK) ?? 0,
    declined: Object.fromEntries(declined.map(([name, times]) => [name.slice(DECLINED_BECAUSE.length), times])),
    workersReplaced: sum.get(REPLACED) ?? 0,
    workers: workers.sort((one, other) => one.pid - other.pid).map(({ pid, begun, counts }) => {
      const { all, own } = memoryKib(pid);
      const served = counts.get(SERVED) ?? 0;
      return { pid, ageSeconds: now - begun, served, isStopped: isStopped(pid), memoryKib: all, ownMemoryKib: own };
    }),
  };
}

/** proc_pid_stat(5): by a signal or by a debugger. */
function isStopped(pid: number): boolean {
  return /\) [Tt] [^)]*$/.test(readTextFile(`/proc/${pid}/stat`) ?? "");
}

function differenceFrom(pid: number): Difference | undefined {
  try {
    const files = new ProcessFiles(pid);
    try {
      // Within another root directory, the kernel shows each root as "/"; the resident sees where a caller's is.
      return differenceOf(files) ?? (placeOf(`/proc/${pid}/root`) === placeOf("/") ? undefined : "namespace");
    } finally {
      files.close();
    }
  } catch {
    return "namespace";
  }
}

function isThisBuild(pid: number): boolean {
  try {
    return Buffer.compare(buildOf(`/proc/${pid}/exe`), ownBuild()) === 0;
  } catch {
    return false;
  }
}
