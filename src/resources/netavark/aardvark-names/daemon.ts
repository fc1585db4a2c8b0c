/** The process of aardvark-dns: finds it, has it reload its files, starts and stops it. */
import { undefinedOnError } from "../../../cni/error.ts";
import { beforeWaitingFor } from "../../../process/patience.ts";
import { EACCES, ENOENT, EPERM, errnoText, ESRCH, isErrno, SyscallError } from "../../../ffi/errno.ts";
import { environmentForChild } from "../../../ffi/environment.ts";
import { closeFile, identify, listDirectory, O_WRONLY, openFile, readTextFile } from "../../../ffi/files.ts";
import { findInPath } from "../../../ffi/find-in-path.ts";
import { fromUtf8 } from "../../../ffi/libc.ts";
import { OtherProcess } from "../../../ffi/other-process.ts";
import type { Finished } from "../../../process/run-program.ts";
import { isCaught, isKilled, SIGHUP, SIGKILL, SIGTERM } from "../../../ffi/signals.ts";
import { readTrustedState, removeStateFile } from "../../../process/state-file.ts";
import { hasSucceeded } from "../../../ffi/spawn.ts";
import { isSystemdRunning } from "../../../ffi/systemd.ts";
import { NOT_EVERYBODYS, runTrusted, UntrustedFile, withJudged } from "../../../process/trusted-executable.ts";
import { log, loudestLevel } from "../shared/log.ts";
import { PID_FILE, writeFile } from "./files.ts";
import type { AardvarkDaemon } from "./spec.ts";

export const NAME = "aardvark-dns";
const COMM_LENGTH = 15;
/** The limit for a process that hangs; aardvark-dns ends within milliseconds. */
const PATIENCE_MS = 5000;
const PAUSE_MS = 5;

/** Runs `work` with the process, held by a descriptor, or with undefined when no process is found. */
function withDaemon<T>(daemon: AardvarkDaemon, deadline: number, work: (found: OtherProcess | undefined) => T): T {
  beforeWaitingFor(NAME);
  const found = findDaemon(daemon, deadline);
  try {
    if (found !== undefined && found.pid !== writtenPid(daemon)) {
      writeFile(`${daemon.directory}/${PID_FILE}`, String(found.pid));
    }
    return work(found);
  } finally {
    found?.close();
  }
}

export function findDaemon(daemon: AardvarkDaemon, deadline: number): OtherProcess | undefined {
  const written = writtenPid(daemon);
  const known = written === undefined ? undefined : openDaemon(written, daemon, deadline);
  if (known !== undefined) return known;
  for (const name of listDirectory("/proc")) {
    const found = /^[0-9]+$/.test(name) ? openDaemon(Number(name), daemon, deadline) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A torn file, or one from before a crash, is not trusted: its number may be another program's. */
function writtenPid({ directory }: AardvarkDaemon): number | undefined {
  const text = readTrustedState(`${directory}/${PID_FILE}`) ?? "";
  return /^[1-9][0-9]{0,9}$/.test(text.trim()) ? Number(text) : undefined;
}

/**
 * /proc is read while the descriptor is open, and the process has not ended afterwards, so both are about one process. Waits
 * for a process that is ending, until the deadline: anybody can have processes that seem to end and do not.
 */
function openDaemon(pid: number, daemon: AardvarkDaemon, deadline: number): OtherProcess | undefined {
  if (!hasName(pid, daemon)) return undefined;
  const opened = OtherProcess.open(pid);
  if (opened === undefined) return undefined;
  const state = stateOf(pid, daemon);
  if (state === "runs" && !opened.hasEnded) return opened;
  if (state === "ends") opened.endsWithin(Math.max(0, Math.ceil(deadline - performance.now())));
  opened.close();
  return undefined;
}

/** Whether it is aardvark-dns with these files. A process that ends has no memory and no arguments, but may have sockets. */
function stateOf(pid: number, daemon: AardvarkDaemon): "runs" | "ends" | "another" {
  try {
    if (!hasName(pid, daemon) || !isOurUsers(pid)) return "another";
    const words = readOf(pid, "cmdline").split("\0"), at = words.indexOf("--config");
    if (words.join("") === "") return hasMemory(pid) ? "another" : "ends";
    const isOurs = at >= 0 && isTrusted(pid) && isSame(`/proc/${pid}/root${words[at + 1]}`, daemon.directory);
    return isOurs ? "runs" : "another";
  } catch {
    return "another"; // It ended meanwhile, or is hidden.
  }
}

/** A process can also overwrite its arguments with nothing. */
function hasMemory(pid: number): boolean {
  return /^VmSize:/m.test(readOf(pid, "status"));
}

/** Proves nothing about the owner: anybody can name a process so. */
function hasName(pid: number, { binary }: AardvarkDaemon): boolean {
  const own = binary.slice(binary.lastIndexOf("/") + 1).slice(0, COMM_LENGTH);
  const name = readOf(pid, "comm").trimEnd();
  return name === NAME || (own !== "" && name === own);
}

function readOf(pid: number | "self", file: string): string {
  // It may have ended meanwhile.
  return undefinedOnError(() => readTextFile(`/proc/${pid}/${file}`)) ?? "";
}

/** Whether our user runs it, in our user and process namespaces. */
function isOurUsers(pid: number): boolean {
  return identify(`/proc/${pid}`).uid === process.geteuid!() &&
    ["ns/pid", "ns/user"].every((link) => isSame(`/proc/${pid}/${link}`, `/proc/self/${link}`));
}

/**
 * A container has a mount namespace of its own. So has each call of rootless podman, and each service with a private /tmp:
 * these have our root directory and our capabilities. A container that has both gains nothing by being trusted.
 *
 * The executable is not compared: a container that sees ours can run it, and an upgrade replaces it while the old one runs.
 */
function isTrusted(pid: number): boolean {
  if (isSame(`/proc/${pid}/ns/mnt`, "/proc/self/ns/mnt")) return true;
  return isSame(`/proc/${pid}/root`, "/proc/self/root") && (capabilitiesOf("self") & ~capabilitiesOf(pid)) === 0n;
}

/** Its permitted capabilities. */
function capabilitiesOf(pid: number | "self"): bigint {
  const [, set] = /^CapPrm:\t([0-9a-f]+)$/m.exec(readOf(pid, "status"))!;
  return BigInt(`0x${set}`);
}

/** Compares files, not paths: a podman within a container has another directory at the same path. */
function isSame(one: string, other: string): boolean {
  return identify(one).id === identify(other).id;
}

/**
 * Has it reload its files. Returns what `whenReloaded` returns for the process that does; false when there is no process.
 * The deadline is for something that starts a new process for each one that ends: others wait for our lock.
 */
export function reload(
  daemon: AardvarkDaemon,
  whenReloaded: (reloaded: OtherProcess) => boolean = () => true,
  searchDeadline = nextDeadline(),
): boolean {
  const deadline = nextDeadline();
  for (let ended: number | undefined;;) {
    const outcome = withDaemon(daemon, searchDeadline, (found) => {
      if (found === undefined) return false;
      if (ended !== undefined && performance.now() > deadline) throw doesNotStay(daemon, ended, found.pid);
      if (hangUp(found, deadline)) return whenReloaded(found);
      ended = found.pid;
      return undefined;
    });
    if (outcome !== undefined) return outcome;
  }
}

function nextDeadline(): number {
  return performance.now() + PATIENCE_MS;
}

function doesNotStay({ directory }: AardvarkDaemon, ended: number, next: number): Error {
  return new Error(
    `${NAME} for ${directory} cannot be told of changes: process ${ended} has ended, and now there is process ${next}; ` +
      "stop what starts it again and again",
  );
}

/** Returns false when it has ended. Until it is ready for this signal, the signal would end it. */
function hangUp(found: OtherProcess, deadline: number): boolean {
  try {
    do {
      if (isCaught(SIGHUP, found.pid) && !isKilled(found.pid)) return found.signal(SIGHUP);
      if (found.endsWithin(PAUSE_MS)) return false;
    } while (performance.now() < deadline);
    end(found);
    return false;
  } catch (error) {
    if (isErrno(error, ENOENT, ESRCH)) return false;
    throw error;
  }
}

/** Without files aardvark-dns ends when it reloads. Waits for that, so that the next start does not meet it ending. */
export function stop(daemon: AardvarkDaemon): void {
  reload(daemon, (reloaded) => {
    if (!reloaded.endsWithin(PATIENCE_MS)) end(reloaded);
    return true;
  });
  removeStateFile(`${daemon.directory}/${PID_FILE}`);
}

/** `wasIdle`: there were no files before. Then the process may be ending, without having read the new ones. */
export function reloadOrStart(daemon: AardvarkDaemon, wasIdle: boolean): void {
  const searchDeadline = nextDeadline();
  withDaemon(daemon, searchDeadline, (before) => {
    if (before === undefined || isHere(before)) return;
    log(
      "warn",
      "netavark::dns::aardvark",
      `${NAME} (process ${before.pid}) is in another network namespace; starting it here`,
    );
    end(before);
  });
  if (!reload(daemon, (reloaded) => !wasIdle || !reloaded.endsWithin(PATIENCE_MS), searchDeadline)) start(daemon);
}

/** Whether it is in this thread's network namespace; true also when it has ended. */
export function isHere({ pid }: OtherProcess): boolean {
  try {
    return isSame(`/proc/${pid}/ns/net`, "/proc/thread-self/ns/net");
  } catch (error) {
    if (isErrno(error, ENOENT, ESRCH, EACCES, EPERM)) return true;
    throw error;
  }
}

function end(found: OtherProcess): void {
  for (const number of [SIGTERM, SIGKILL]) if (!found.signal(number) || found.endsWithin(PATIENCE_MS)) return;
}

/** Returns when it listens: its first process ends then. */
function start(daemon: AardvarkDaemon): void {
  const [path, ...argv] = commandFor(daemon);
  log("debug", "netavark::dns::aardvark", `start ${NAME}: ${JSON.stringify([path, ...argv])}`);
  const { ending, stderr } = run(daemon, path!, [path!, ...argv]);
  if (hasSucceeded(ending)) return;
  const said = fromUtf8(stderr).trim();
  throw new Error(
    said === "" ? `${NAME} exited unexpectedly without error message` : `${NAME} failed to start: ${said}`,
  );
}

/**
 * systemd-run executes it by its path, so it is judged here, too. When its child fails, the first process says so, and the
 * child, which may end later, says why.
 */
function run({ binary }: AardvarkDaemon, path: string, argv: string[]): Finished {
  const nothing = openFile("/dev/null", O_WRONLY);
  try {
    const environment = environmentForChild({ RUST_LOG: loudestLevel() });
    return withJudged(
      binary,
      NOT_EVERYBODYS,
      () => runTrusted({ path, argv, environment, heirsMs: PATIENCE_MS }, new Uint8Array(), { stdout: nothing }),
    );
  } catch (error) {
    const isMissing = error instanceof SyscallError;
    if (!isMissing && !(error instanceof UntrustedFile)) throw error;
    const why = isMissing ? `Failed to find executable ${error.subject}: ${errnoText(error.errno)}` : error.message;
    throw new Error(`${NAME} failed to start: ${why}`, { cause: error });
  } finally {
    closeFile(nothing);
  }
}

/** With systemd it gets a scope of its own: it must not end with the service that started the first container. */
function commandFor({ directory, binary, port, isRootless }: AardvarkDaemon): string[] {
  const systemdRun = isSystemdRunning() ? findInPath("systemd-run") : undefined;
  const scope = systemdRun === undefined ? [] : [systemdRun, "-q", "--scope", ...isRootless ? ["--user"] : []];
  return [...scope, binary, "--config", directory, "-p", String(port), "run"];
}
