/** Running a program to its end, with what it reads and writes (pipe(7), poll(2)). */
import { EINTR, EPIPE, ESRCH, isErrno, SyscallError } from "../ffi/errno.ts";
import { closeFile } from "../ffi/files.ts";
import { areInterruptionsTaken, endsProgram, signalDescriptor, throwIfInterrupted } from "./interruption.ts";
import { lastErrno, libc } from "../ffi/libc.ts";
import { poll, POLLIN, POLLOUT } from "../ffi/poll.ts";
import { sendSignal, SIGKILL } from "../ffi/signals.ts";
import { type Ending, hasSucceeded, openPidfd, openPipe, type Program, spawn, waitFor } from "../ffi/spawn.ts";

export interface Finished {
  ending: Ending;
  stdout: Uint8Array;
  stderr: Uint8Array;
}

/** The limit for each of a child's outputs; the rest is read and dropped, so that the child never blocks. */
const OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024;

/** Descriptors that the child gets instead of a pipe to us. */
export interface GivenOutputs {
  stdout?: number;
  stderr?: number;
}

/** Longer than any tool works: only ends one that hangs, and the wait of those who wait for us. */
const PATIENCE_MS = 120_000;

export type ProgramToRun = Omit<Program, "descriptors"> & {
  /** Infinity for a plugin: the specification sets no limit, and the engine that waits for us has its own. */
  patienceMs?: number;
  /** How long a program that has failed leaves it to its own children to say why: until they close the outputs. */
  heirsMs?: number;
  /** The first signal to us kills it (interruption.ts). */
  isInterruptible?: boolean;
};

/** Runs the program with `stdin` until it ends. Else does not wait for grandchildren that keep the pipes open. */
export function runProgram(
  { patienceMs = PATIENCE_MS, heirsMs = 0, isInterruptible = false, ...program }: ProgramToRun,
  stdin: Uint8Array,
  given: GivenOutputs = {},
): Finished {
  const open = new Set<number>();
  const pipe = (): [readEnd: number, writeEnd: number] => {
    const ends = openPipe();
    ends.forEach((fd) => open.add(fd));
    return ends;
  };
  const close = (fd: number) => {
    if (open.delete(fd)) closeFile(fd);
  };
  try {
    const output = (fd: number | undefined) => fd === undefined ? pipe() : [-1, fd] as const;
    const [theirIn, ourIn] = pipe(),
      [ourOut, theirOut] = output(given.stdout),
      [ourErr, theirErr] = output(given.stderr);
    const signals = signalDescriptor();
    // A terminal's signal reaches a group: what interrupts ADD must not end what ADD or the taking back waits for.
    const hasOwnGroup = program.hasOwnGroup || areInterruptionsTaken();
    const pid = spawn({ ...program, hasOwnGroup, descriptors: [theirIn, theirOut, theirErr] });
    [theirIn, theirOut, theirErr].forEach(close);
    // Before Linux 5.3 this is negative, which poll ignores: then the loop ends when the pipes are closed.
    const pidfd = openPidfd(pid);
    if (pidfd >= 0) open.add(pidfd);
    const fromOut = new Collected(), fromErr = new Collected();
    const outputs = new Map([[ourOut, fromOut], [ourErr, fromErr]]);
    let unwritten = stdin, ending: Ending | undefined, failure: SyscallError | undefined;
    for (let deadline = performance.now() + patienceMs;;) {
      if (unwritten.length === 0) close(ourIn);
      const reading = [...outputs.keys()].filter((fd) => open.has(fd));
      if (reading.length === 0 && !open.has(ourIn) && (ending !== undefined || pidfd < 0)) break;
      const leftMs = deadline - performance.now();
      if (leftMs < 0 && ending === undefined) throw killed(pid, program, patienceMs);
      const running = ending === undefined ? [pidfd, signals] : [];
      const inputs = [...reading, ...running].map((fd) => ({ fd, events: POLLIN }));
      const ready = poll([...inputs, { fd: open.has(ourIn) ? ourIn : -1, events: POLLOUT }], Math.max(0, leftMs));
      if (ending !== undefined && leftMs <= 0 && !reading.some((fd) => ready.has(fd))) break;
      if (ready.has(signals) && endsProgram(program.path, isInterruptible)) throw ended(pid, program.path);
      // What a success has not written by now belongs to what it leaves behind.
      if (ready.has(pidfd)) deadline = performance.now() + (hasSucceeded(ending = waitFor(pid)) ? 0 : heirsMs);
      if (ready.has(ourIn)) {
        const written = writeSome(ourIn, unwritten);
        if (written >= 0) unwritten = unwritten.subarray(written);
        else {
          // The child must not take half of its input for all of it. EPIPE: it closed its stdin.
          if (lastErrno() !== EPIPE) failure = new SyscallError("write", lastErrno(), `stdin of ${program.path}`);
          close(ourIn);
        }
      }
      for (const fd of reading) {
        if (ready.has(fd) && !outputs.get(fd)!.readFrom(fd)) close(fd);
      }
    }
    ending ??= waitFor(pid);
    if (failure !== undefined) throw failure;
    return { ending, stdout: fromOut.bytes(), stderr: fromErr.bytes() };
  } finally {
    open.forEach((fd) => closeFile(fd));
  }
}

/** Returns a negative number when it fails. */
function writeSome(fd: number, bytes: Uint8Array): number {
  // POLLOUT promises room for PIPE_BUF (4096) bytes, so this does not block.
  const written = Number(libc.write(fd, bytes, Math.min(bytes.length, 4096)));
  return written < 0 && lastErrno() === EINTR ? 0 : written;
}

export class Overdue extends Error {}

/** A program with a group of its own is killed with what it has started. */
function killed(
  pid: number,
  { path, hasOwnGroup = false }: Omit<Program, "descriptors">,
  patienceMs: number,
): Overdue {
  kill(pid, hasOwnGroup);
  return new Overdue(
    `${path} (process ${pid}) had not ended after ${Number((patienceMs / 1000).toPrecision(2))} s, and was killed`,
  );
}

/** With what the program has started, which would go on beside the taking back. */
function ended(pid: number, path: string): Error {
  kill(pid, true);
  throwIfInterrupted();
  return new Error(`${path} had not ended, and was killed because signals came again and again`);
}

/** The program may have left its group, which then has no process any more, or others. */
function kill(pid: number, withGroup: boolean): void {
  try {
    if (withGroup) sendSignal(-pid, SIGKILL);
  } catch (error) {
    if (!isErrno(error, ESRCH)) throw error;
  } finally {
    sendSignal(pid, SIGKILL);
    waitFor(pid);
  }
}

/** The output read from one pipe. */
class Collected {
  private chunks: Uint8Array[] = [];
  private size = 0;

  /** Reads what is there; answers false at the end of the output. */
  readFrom(fd: number): boolean {
    const chunk = new Uint8Array(65536);
    const count = Number(libc.read(fd, chunk, chunk.length));
    if (count < 0) return lastErrno() === EINTR;
    const part = chunk.subarray(0, Math.min(count, OUTPUT_LIMIT_BYTES - this.size));
    this.size += part.length;
    if (part.length > 0) this.chunks.push(part);
    return count > 0;
  }

  bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.chunks));
  }
}
