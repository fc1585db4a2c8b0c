/**
 * A resident that nobody has to set up: a call that has done its work starts one, where a file beside the program permits it
 * (`install --resident=calls`). By birth it has the namespaces, rights, control group and labels of the call, which are the
 * engine's. What the call alone has it does not have: no descriptor, directory, environment, session, ignored signal or
 * priority.
 *
 * No service manager knows it, so it is humble. There is at most one at a time: it holds a lock while it lives. It ends when
 * nobody calls, and when its program's file or the permission goes or changes. It is not started where it could be in
 * somebody's way.
 */
import { errorText } from "../../cni/error.ts";
import { moveUp } from "../../ffi/descriptors.ts";
import { hasMemoryLimit } from "../../ffi/control-group.ts";
import {
  closeFile,
  exists,
  idAt,
  makeDirectories,
  O_CREAT,
  O_RDWR,
  openFile,
  placeOf,
  readTextFile,
} from "../../ffi/files.ts";
import { linkTarget } from "../../ffi/directory-entries.ts";
import { ProcessFiles } from "../../ffi/process-files.ts";
import { becomeIndependent } from "../../ffi/session.ts";
import { sendSignal, SIGTERM } from "../../ffi/signals.ts";
import { spawn } from "../../ffi/spawn.ts";
import { tryLockExclusive, tryLockShared } from "../../process/lock.ts";
import { IDLE_SECONDS, isSwitchedOff } from "../../process/resident-by-call.ts";
import { DIRECTORY_OF_ROOT, RESIDENT_LOCK } from "../../process/state-directory.ts";
import { judgeStateDirectory, openStateFile } from "../../process/state-file.ts";
import { differenceBesideLabel } from "./caller-difference.ts";
import { residentPid } from "./socket.ts";

export const BY_CALL = "--by-call";
/** The descriptor by which it is given the lock. */
const LOCK = 3;

/** The call is done and answered: nothing that goes wrong here is anybody's. */
export function startByCall(): void {
  if (process.geteuid!() !== 0 || isSwitchedOff()) return;
  try {
    // What is cheap is asked first, and all of it before a file is made.
    if (residentPid() !== undefined || !isOutOfTheWay()) return;
    const lock = takeLock();
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
 * The caller is an engine in the system that process 1 has begun: no person, no sandbox, and nothing that ends before long.
 * And no limit of it fails calls that succeed by themselves.
 */
function isOutOfTheWay(): boolean {
  return !hasTerminal() && isInitialUserNamespace() && isLikeFirstProcess() && !hasResourceLimit() &&
    !hasMemoryLimit();
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
  const first = new ProcessFiles(1), own = new ProcessFiles("self");
  try {
    // Within another root directory, the kernel shows each root as "/".
    return placeOf("/proc/1/root") === placeOf("/") && differenceBesideLabel(first) === undefined &&
      belongings(first, "1") === belongings(own, "self");
  } finally {
    first.close();
    own.close();
  }
}

/** A person who has logged in has an audit identity, which would be that of all later calls. */
function belongings(files: ProcessFiles, name: string): string {
  const audit = readTextFile(`/proc/${name}/loginuid`) ?? "";
  const others = OTHER_NAMESPACES.map((one) => linkTarget(`/proc/${name}/ns/${one}`) ?? "");
  return [files.value("Groups").trim(), audit, ...others].join("\n");
}

/** Namespaces that a caller of the resident need not share, as far as the kernel has them. */
const OTHER_NAMESPACES = ["uts", "ipc", "cgroup", "time"];

function hasResourceLimit(): boolean {
  const limits = readTextFile("/proc/self/limits") ?? "";
  if (!/^Max open files +(unlimited|\d{4,}) /m.test(limits)) return true;
  return !["cpu time", "file size", "data size", "address space"].every((what) =>
    new RegExp(`^Max ${what} +unlimited `, "m").test(limits)
  );
}

/** Undefined when a resident that a call has started has it. */
function takeLock(): number | undefined {
  makeDirectories(DIRECTORY_OF_ROOT, 0o700);
  judgeStateDirectory(DIRECTORY_OF_ROOT);
  const { fd } = openStateFile(RESIDENT_LOCK, O_RDWR | O_CREAT);
  if (tryLockExclusive(fd)) return moveUp(fd);
  closeFile(fd);
  return undefined;
}

function start(lock: number): void {
  const nothing = moveUp(openFile("/dev/null", O_RDWR));
  try {
    spawn({
      path: "/proc/self/exe",
      argv: ["patchbay", "serve", BY_CALL, `--idle=${IDLE_SECONDS}`],
      environment: [],
      descriptors: [nothing, nothing, nothing, lock],
    });
  } finally {
    closeFile(nothing);
  }
}

/** Before the resident's process executes itself again: that resets what the runtime has set up for itself. */
export function separate(): void {
  becomeIndependent(LOCK);
}

export const LOCKED = `another process has locked ${RESIDENT_LOCK}`;

/** Why no call of this host starts one, whoever makes it; undefined when nothing is in the way. Changes nothing. */
export function obstacleOnHost(): string | undefined {
  try {
    if (!exists(DIRECTORY_OF_ROOT)) return undefined;
    judgeStateDirectory(DIRECTORY_OF_ROOT);
    if (!exists(RESIDENT_LOCK)) return undefined;
    const { fd } = openStateFile(RESIDENT_LOCK, O_RDWR);
    try {
      return tryLockShared(fd) ? undefined : LOCKED;
    } finally {
      closeFile(fd);
    }
  } catch (error) {
    return errorText(error);
  }
}

/** It stays locked as long as this process lives. */
export function holdLock(): void {
  const id = idAt(RESIDENT_LOCK), isGiven = id !== undefined && idAt(LOCK) === id;
  const lock = isGiven ? moveUp(LOCK) : takeLock();
  if (lock === undefined) throw new Error(`a call has started another resident, which has locked ${RESIDENT_LOCK}`);
}

export function wasStartedByCall(pid: number): boolean {
  return readTextFile(`/proc/${pid}/cmdline`)?.split("\0").includes(BY_CALL) ?? false;
}

/** Ends the resident if a call has started it. Returns its process id. */
export function endStartedByCall(): number | undefined {
  const pid = residentPid();
  if (!pid || !wasStartedByCall(pid)) return undefined;
  sendSignal(pid, SIGTERM);
  return pid;
}
