/** aardvark-dns as a process: finding it, telling it that its files have changed, starting it, ending it. */
import { EACCES, ENOENT, EPERM, errnoText, ESRCH, isErrno, SyscallError } from "../../ffi/errno.ts";
import { environmentForChild } from "../../ffi/environment.ts";
import {
  closeFile,
  exists,
  identify,
  listDirectory,
  O_WRONLY,
  openFile,
  readTextFile,
  removeFile,
} from "../../ffi/files.ts";
import { findInPath } from "../../ffi/find-in-path.ts";
import { fromUtf8 } from "../../ffi/libc.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import { isCaught, isKilled, sendSignal, SIGHUP, SIGKILL, SIGTERM } from "../../ffi/signals.ts";
import { type Finished, openPidfd, runWhenNotBusy } from "../../ffi/spawn.ts";
import { log, loudestLevel } from "../wire/log.ts";
import { PID_FILE, writeFile } from "./files.ts";
import type { Daemon } from "./spec.ts";

const NAME = "aardvark-dns", COMM_LENGTH = 15;
const SYSTEMD = "/run/systemd/system";
/** Ends what hangs; aardvark-dns ends within milliseconds. */
const PATIENCE_MS = 5000;
const PAUSE_MS = 5;

/** Its process id. A file that is torn or of before a crash is not believed: its number may be another program's. */
function findDaemon(daemon: Daemon): number | undefined {
  const text = readTextFile(`${daemon.directory}/${PID_FILE}`) ?? "";
  const written = /^[1-9][0-9]{0,9}$/.test(text.trim()) ? Number(text) : undefined;
  if (written !== undefined && isDaemon(written, daemon)) return written;
  if (written !== undefined && isEnding(written, daemon)) endsWithin(written, PATIENCE_MS);
  const found = listDirectory("/proc").filter((name) => /^[0-9]+$/.test(name)).map(Number)
    .find((pid) => isDaemon(pid, daemon));
  if (found !== undefined) writeFile(`${daemon.directory}/${PID_FILE}`, String(found));
  return found;
}

/** Whether the process is aardvark-dns, this user's, and with these files. */
function isDaemon(pid: number, daemon: Daemon): boolean {
  if (!hasName(pid, daemon)) return false;
  const words = readOf(pid, "cmdline").split("\0"), at = words.indexOf("--config");
  return at >= 0 && isOwn(pid) && isSameDirectory(`/proc/${pid}/root${words[at + 1]}`, daemon.directory);
}

/** Whether it may be aardvark-dns that ends: it has no memory any more, and so no arguments, but may have its sockets. */
function isEnding(pid: number, daemon: Daemon): boolean {
  return hasName(pid, daemon) && readOf(pid, "cmdline") === "" && isOwn(pid);
}

function hasName(pid: number, { binary }: Daemon): boolean {
  const own = binary.slice(binary.lastIndexOf("/") + 1).slice(0, COMM_LENGTH);
  const name = readOf(pid, "comm").trimEnd();
  return name === NAME || (own !== "" && name === own);
}

function readOf(pid: number, file: string): string {
  try {
    return readTextFile(`/proc/${pid}/${file}`) ?? "";
  } catch {
    return ""; // It ended meanwhile.
  }
}

/** Others could claim to be it. */
function isOwn(pid: number): boolean {
  try {
    return identify(`/proc/${pid}`).uid === process.geteuid!();
  } catch {
    return false;
  }
}

/** Not by its path: a podman within a container has its own directory there. */
function isSameDirectory(one: string, other: string): boolean {
  try {
    return identify(one).id === identify(other).id;
  } catch {
    return false;
  }
}

/** That its files have changed. Answers which process knows now; undefined when there is none. */
export function tell(daemon: Daemon): number | undefined {
  for (;;) {
    const pid = findDaemon(daemon);
    if (pid === undefined || hangUp(pid)) return pid;
  }
}

/** Answers false when it has ended. Until it is ready for this signal, the signal would end it. */
function hangUp(pid: number): boolean {
  try {
    for (let waited = 0; waited < PATIENCE_MS; waited += PAUSE_MS) {
      if (isCaught(SIGHUP, pid) && !isKilled(pid)) return signal(pid, SIGHUP);
      if (endsWithin(pid, PAUSE_MS)) return false;
    }
    end(pid);
    return false;
  } catch (error) {
    if (isErrno(error, ENOENT, ESRCH)) return false;
    throw error;
  }
}

function signal(pid: number, number: number): boolean {
  try {
    sendSignal(pid, number);
    return true;
  } catch (error) {
    if (isErrno(error, ESRCH)) return false;
    throw error;
  }
}

/** After its last file is gone, aardvark-dns ends when told. Whoever starts it next must not meet it ending. */
export function tellToEnd(daemon: Daemon): void {
  const pid = tell(daemon);
  if (pid !== undefined && !endsWithin(pid, PATIENCE_MS)) end(pid);
  removeFile(`${daemon.directory}/${PID_FILE}`);
}

/** `wasIdle`: it had no files before. Then it may have been told to end, and may not have read the new ones. */
export function tellOrStart(daemon: Daemon, wasIdle: boolean): void {
  const before = findDaemon(daemon);
  if (before !== undefined && !isHere(before)) {
    log(
      "warn",
      "netavark::dns::aardvark",
      `${NAME} (process ${before}) is in another network namespace; starting it here`,
    );
    end(before);
  }
  const pid = tell(daemon);
  if (pid === undefined || (wasIdle && endsWithin(pid, PATIENCE_MS))) start(daemon);
}

/** In this thread's network namespace, as far as the kernel tells. */
function isHere(pid: number): boolean {
  try {
    return identify(`/proc/${pid}/ns/net`).id === identify("/proc/thread-self/ns/net").id;
  } catch (error) {
    if (isErrno(error, ENOENT, ESRCH, EACCES, EPERM)) return true;
    throw error;
  }
}

function end(pid: number): void {
  if (!signal(pid, SIGTERM) || endsWithin(pid, PATIENCE_MS)) return;
  if (signal(pid, SIGKILL)) endsWithin(pid, PATIENCE_MS);
}

function endsWithin(pid: number, ms: number): boolean {
  const pidfd = openPidfd(pid);
  if (pidfd < 0) return true;
  try {
    return poll([{ fd: pidfd, events: POLLIN }], ms).size > 0;
  } finally {
    closeFile(pidfd);
  }
}

/** Returns when it listens: only then its first process ends. */
function start(daemon: Daemon): void {
  const [path, ...argv] = commandFor(daemon);
  log("debug", "netavark::dns::aardvark", `start ${NAME}: ${JSON.stringify([path, ...argv])}`);
  const { ending, stderr } = run(path!, [path!, ...argv]);
  if ("exitStatus" in ending && ending.exitStatus === 0) return;
  const said = fromUtf8(stderr).trim();
  throw new Error(
    said === "" ? `${NAME} exited unexpectedly without error message` : `${NAME} failed to start: ${said}`,
  );
}

function run(path: string, argv: string[]): Finished {
  const nothing = openFile("/dev/null", O_WRONLY);
  try {
    const environment = environmentForChild({ RUST_LOG: loudestLevel() });
    return runWhenNotBusy({ path, argv, environment }, new Uint8Array(), { stdout: nothing });
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    throw new Error(`${NAME} failed to start: Failed to find executable ${path}: ${errnoText(error.errno)}`, {
      cause: error,
    });
  } finally {
    closeFile(nothing);
  }
}

/** Where systemd runs, in a scope of its own: it must not end with the service that started the first container. */
function commandFor({ directory, binary, port, isRootless }: Daemon): string[] {
  const systemdRun = exists(SYSTEMD) ? findInPath("systemd-run") : undefined;
  const scope = systemdRun === undefined ? [] : [systemdRun, "-q", "--scope", ...isRootless ? ["--user"] : []];
  return [...scope, binary, "--config", directory, "-p", String(port), "run"];
}
