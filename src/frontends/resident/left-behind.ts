/**
 * A resident that nobody has to set up: a call that has done its work leaves one behind, where a file beside the program
 * permits it (`install --resident=left`). It has the engine's namespaces, rights, control group and labels by birth, and
 * nothing else of the call: no descriptor, directory, environment, session, ignored signal or priority.
 *
 * No service manager knows it, so it is humble. It is one, which a lock says that it holds all its life. It ends when nobody
 * calls, and when its program's file goes or changes. It is not begun where it could be in somebody's way.
 */
import { moveUp } from "../../ffi/descriptors.ts";
import { hasMemoryLimit } from "../../ffi/control-group.ts";
import { variable } from "../../ffi/environment.ts";
import {
  closeFile,
  idAt,
  identify,
  makeDirectories,
  O_CREAT,
  O_RDWR,
  openFile,
  placeOf,
  readTextFile,
} from "../../ffi/files.ts";
import { ProcessFiles } from "../../ffi/process-files.ts";
import { becomeIndependent } from "../../ffi/session.ts";
import { sendSignal, SIGTERM } from "../../ffi/signals.ts";
import { spawn } from "../../ffi/spawn.ts";
import { tryLockExclusive } from "../../process/lock.ts";
import { DIRECTORY_OF_ROOT, LEFT_BEHIND } from "../../process/state-directory.ts";
import { judgeStateDirectory, openStateFile } from "../../process/state-file.ts";
import { differenceBesideLabel } from "./caller-difference.ts";
import { residentPid } from "./socket.ts";

/** As in the unit for systemd. */
const IDLE_SECONDS = 900;
/** The descriptor by which it is given the lock. */
const LOCK = 3;
const LEFT = "--left";

/** The call is done and answered: nothing that goes wrong here is anybody's. */
export function leaveResident(): void {
  if (process.geteuid!() !== 0 || variable("PATCHBAY_RESIDENT") === "off") return;
  try {
    // Asked first: where none may be left, no file of it is to stay either.
    const lock = isOutOfTheWay() ? takeLock() : undefined;
    if (lock === undefined) return;
    try {
      if (residentPid() === undefined) start(lock);
    } finally {
      closeFile(lock);
    }
  } catch {
    // The next call tries again.
  }
}

/**
 * The caller is an engine in the system that process 1 has begun, and no person, no container and no namespace that ends
 * before long; and nobody has less memory for it.
 */
function isOutOfTheWay(): boolean {
  return !hasTerminal() && isInitialUserNamespace() && isLikeFirstProcess() &&
    !hasProcessLimit() && !hasMemoryLimit();
}

function hasTerminal(): boolean {
  const stat = readTextFile("/proc/self/stat") ?? "";
  // proc_pid_stat(5): tty_nr is the fifth field behind the name.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[4] !== "0";
}

function isInitialUserNamespace(): boolean {
  return /^\s*0\s+0\s+4294967295\s*$/.test(readTextFile("/proc/self/uid_map") ?? "");
}

function isLikeFirstProcess(): boolean {
  const first = new ProcessFiles(1);
  try {
    // Within another root directory, the kernel shows each root as "/".
    return placeOf("/proc/1/root") === placeOf("/") && differenceBesideLabel(first) === undefined;
  } finally {
    first.close();
  }
}

/** It would fail calls that succeed by themselves. */
function hasProcessLimit(): boolean {
  const limits = readTextFile("/proc/self/limits") ?? "";
  return !["cpu time", "file size", "data size", "address space"].every((what) =>
    new RegExp(`^Max ${what} +unlimited `, "m").test(limits)
  );
}

/** Undefined when one that was left behind has it. */
function takeLock(): number | undefined {
  makeDirectories(DIRECTORY_OF_ROOT, 0o700);
  judgeStateDirectory(DIRECTORY_OF_ROOT);
  const { fd } = openStateFile(LEFT_BEHIND, O_RDWR | O_CREAT);
  if (tryLockExclusive(fd)) return moveUp(fd);
  closeFile(fd);
  return undefined;
}

function start(lock: number): void {
  const nothing = moveUp(openFile("/dev/null", O_RDWR));
  try {
    spawn({
      path: "/proc/self/exe",
      argv: ["patchbay", "serve", LEFT, `--idle=${IDLE_SECONDS}`],
      environment: [],
      descriptors: [nothing, nothing, nothing, lock],
    });
  } finally {
    closeFile(nothing);
  }
}

/** In the resident's process, which then executes itself again. */
export function beginLeft(): void {
  becomeIndependent(LOCK);
}

/** It stays locked as long as this process lives. */
export function holdLock(): void {
  const id = idAt(LEFT_BEHIND), isGiven = id !== undefined && idOfFile(`/proc/self/fd/${LOCK}`) === id;
  const lock = isGiven ? moveUp(LOCK) : takeLock();
  if (lock === undefined) throw new Error(`another resident was left behind, and has locked ${LEFT_BEHIND}`);
}

/** Whether a call has left this resident behind. */
export function wasLeft(pid: number): boolean {
  return readTextFile(`/proc/${pid}/cmdline`)?.split("\0").includes(LEFT) ?? false;
}

/** Ends the one that a call has left behind; only one that runs this file, if given. Returns its process id. */
export function endLeft(program?: string): number | undefined {
  const pid = residentPid();
  if (!pid || !wasLeft(pid)) return undefined;
  if (program !== undefined && idOfFile(`/proc/${pid}/exe`) !== idOfFile(program)) return undefined;
  sendSignal(pid, SIGTERM);
  return pid;
}

function idOfFile(path: string): string | undefined {
  try {
    return identify(path).id;
  } catch {
    return undefined;
  }
}
