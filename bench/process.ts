/**
 * Times whole processes from posix_spawn(3) to the end of wait4(2), with as little of our own work in between as
 * possible: everything is prepared before the clock starts, and output goes to files that are read after it stops.
 */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTextFile } from "../src/ffi/files.ts";
import { bind, check, cString } from "../src/ffi/libc.ts";
import { FFIType, ptr } from "../src/ffi/native.ts";

const c = bind({
  posix_spawn: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  posix_spawn_file_actions_init: { args: ["ptr"], returns: "i32" },
  posix_spawn_file_actions_addopen: { args: ["ptr", "i32", "ptr", "i32", "i32"], returns: "i32" },
  posix_spawn_file_actions_adddup2: { args: ["ptr", "i32", "i32"], returns: "i32" },
  wait4: { args: ["i32", "ptr", "i32", "ptr"], returns: "i32" },
  kill: { args: ["i32", "i32"], returns: "i32" },
  prctl: { args: ["i32", FFIType.u64_fast], returns: "i32" },
});

export interface Program {
  path: string;
  /** Without argv[0], which is the path. */
  args?: readonly string[];
  env: Record<string, string>;
  stdin?: string;
}

export interface Finished {
  ms: number;
  /** Exit status, or 128 + signal. */
  code: number;
}

export interface Runnable {
  /** Runs it once and waits for it. */
  run(): Finished;
  stdout(): string;
  stderr(): string;
}

export interface Prepared extends Runnable {
  /** Sets its stdin from the next run on. */
  reads(stdin: string): void;
  /** Starts it. Returns a function that waits for it and returns its exit status. */
  start(): () => number;
}

let prepared = 0;

/** Prepares everything for running the program. Its stdin, stdout and stderr are files in `directory`. */
export function prepare(program: Program, directory: string): Prepared {
  mkdirSync(directory, { recursive: true });
  const base = join(directory, String(prepared++));
  writeFileSync(`${base}.in`, program.stdin ?? "");
  const strings = (texts: readonly string[]) => {
    const bytes = texts.map(cString);
    return { bytes, pointers: new BigUint64Array([...bytes.map((one) => BigInt(ptr(one))), 0n]) };
  };
  const argv = strings([program.path, ...program.args ?? []]);
  const environment = strings(Object.entries(program.env).map(([name, value]) => `${name}=${value}`));
  const path = cString(program.path);
  const actions = new Uint8Array(512);
  const files = [`${base}.in`, `${base}.out`, `${base}.err`].map(cString);
  c.posix_spawn_file_actions_init(actions);
  const O_RDONLY = 0, O_WRONLY_CREAT_TRUNC = 0o1101;
  files.forEach((file, fd) =>
    c.posix_spawn_file_actions_addopen(actions, fd, file, fd === 0 ? O_RDONLY : O_WRONLY_CREAT_TRUNC, 0o600)
  );
  const pid = new Int32Array(1), status = new Int32Array(1);
  const spawn = () => {
    const errno = c.posix_spawn(pid, path, actions, null, argv.pointers, environment.pointers);
    if (errno !== 0) throw new Error(`cannot start ${program.path}: errno ${errno}`);
  };
  const codeOf = (status: number) => (status & 0x7f) === 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f);
  return {
    reads: (stdin) => writeFileSync(`${base}.in`, stdin),
    run() {
      const started = Bun.nanoseconds();
      spawn();
      check("wait4", c.wait4(pid[0]!, status, 0, null));
      const ms = (Bun.nanoseconds() - started) / 1e6;
      // Only their addresses were passed; this use prevents the bytes from being collected.
      void argv.bytes, environment.bytes, files;
      return { ms, code: codeOf(status[0]!) };
    },
    start() {
      spawn();
      const started = pid[0]!;
      return () => {
        check("wait4", c.wait4(started, status, 0, null));
        return codeOf(status[0]!);
      };
    },
    stdout: () => readFileSync(`${base}.out`, "utf8"),
    stderr: () => readFileSync(`${base}.err`, "utf8"),
  };
}

/**
 * From now on, orphans of our children become our children. Returns a function that waits for all of them but the
 * `services`, and for the children of the resident's workers: work that a call leaves to another process must not disturb
 * the next measurement.
 */
export function adoptOrphans(resident: () => number, services: ReadonlySet<number>): () => void {
  const PR_SET_CHILD_SUBREAPER = 36, WNOHANG = 1;
  check("prctl", c.prctl(PR_SET_CHILD_SUBREAPER, 1));
  const status = new Int32Array(1);
  const isBusy = () => {
    while (c.wait4(-1, status, WNOHANG, null) > 0);
    const workers = childrenOf(resident());
    const own = childrenOf(process.pid).filter((pid) => pid !== resident() && !services.has(pid));
    return [...own, ...workers.flatMap(childrenOf)].some(isRunning);
  };
  return () => {
    while (isBusy()) Bun.sleepSync(0.2);
  };
}

export function childrenOf(pid: number): number[] {
  return textIfThere(`/proc/${pid}/task/${pid}/children`).split(" ").filter((one) => one !== "").map(Number);
}

export function isRunning(pid: number): boolean {
  const text = textIfThere(`/proc/${pid}/stat`), state = text.slice(text.lastIndexOf(")") + 2)[0];
  return state !== undefined && state !== "Z";
}

/** A process may end while its files are read. */
function textIfThere(path: string): string {
  try {
    return readTextFile(path) ?? "";
  } catch {
    return "";
  }
}

/**
 * Memory of the program while it waits for its stdin, in KiB. The maximum from wait4 is of no use, because it includes
 * the parent's memory at the start.
 */
export function memoryAtRest(program: Program, directory: string): { privateKiB: number; residentKiB: number } {
  const child = Bun.spawn([program.path, ...program.args ?? []], {
    env: program.env,
    cwd: directory,
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
  });
  try {
    Bun.sleepSync(100);
    const rollup = readFileSync(`/proc/${child.pid}/smaps_rollup`, "utf8");
    const figure = (name: string) => Number(rollup.match(new RegExp(`^${name}: +(\\d+) kB`, "m"))?.[1]);
    return { privateKiB: figure("Private_Dirty"), residentKiB: figure("Rss") };
  } finally {
    child.kill("SIGKILL");
  }
}

/** Drops the file from the page cache, then reads it sequentially, as after copying it. */
export function readAgain(path: string): void {
  forget(path);
  readFileSync(path);
}

/** Drops the file's clean pages from the page cache: the next start reads the pages it touches, as after a reboot. */
export function forget(path: string): void {
  const POSIX_FADV_DONTNEED = 4;
  const { posix_fadvise, fsync } = bind({
    posix_fadvise: { args: ["i32", FFIType.i64_fast, FFIType.i64_fast, "i32"], returns: "i32" },
    fsync: { args: ["i32"], returns: "i32" },
  });
  const fd = openSync(path, "r");
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  closeSync(fd);
}
