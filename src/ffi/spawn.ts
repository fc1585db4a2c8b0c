/**
 * Child processes: posix_spawn(3), pipes, waitpid(2), all synchronous.
 *
 * Not Bun.spawnSync, which gives the child sockets where shell plugins expect pipes (`echo >/dev/stderr` fails on a
 * socket), passes the environment through strings, and starts threads.
 */
import { SyscallError } from "./errno.ts";
import { O_CLOEXEC } from "./files.ts";
import { bind, bindLater, check, cString, lastErrno, retrying } from "./libc.ts";
import { withInheritedUmask } from "./umask.ts";
import { FFIType, ptr } from "./native.ts";

const c = bindLater({
  posix_spawn: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  posix_spawn_file_actions_init: { args: ["ptr"], returns: "i32" },
  posix_spawn_file_actions_adddup2: { args: ["ptr", "i32", "i32"], returns: "i32" },
  posix_spawn_file_actions_addclose: { args: ["ptr", "i32"], returns: "i32" },
  posix_spawn_file_actions_destroy: { args: ["ptr"], returns: "i32" },
  posix_spawnattr_init: { args: ["ptr"], returns: "i32" },
  posix_spawnattr_setflags: { args: ["ptr", "i16"], returns: "i32" },
  posix_spawnattr_setsigdefault: { args: ["ptr", "ptr"], returns: "i32" },
  pipe2: { args: ["ptr", "i32"], returns: "i32" },
  waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" },
  signal: { args: ["i32", "ptr"], returns: "ptr" },
  sigaction: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  syscall: { args: [FFIType.i64_fast, FFIType.i64_fast, FFIType.i64_fast], returns: FFIType.i64_fast },
});

const SIGCHLD = 17;
// Bun ignores SIGPIPE (13) and SIGXFSZ (25), and ignored signals stay ignored across exec.
const IGNORED_BY_BUN = (1n << 12n) | (1n << 24n);
// bits/spawn.h. The attributes that are not set otherwise are a group of the child's own and no blocked signal.
const POSIX_SPAWN_SETPGROUP = 0x02, POSIX_SPAWN_SETSIGDEF = 0x04, POSIX_SPAWN_SETSIGMASK = 0x08;
const SYS_pidfd_open = 434; // the same number on every architecture

export interface Program {
  path: string;
  /** What is executed, where `path` is only what errors call it (trusted-executable.ts). */
  executed?: string;
  argv: readonly string[];
  /** `NAME=value` entries as bytes, without the final NUL. */
  environment: readonly Uint8Array[];
  /** Index: the child's descriptor. Value: our descriptor, or undefined to close it. */
  descriptors: readonly (number | undefined)[];
  /** One more, far from the others. */
  inherited?: { ours: number; theirs: number };
  /** Signals to our process group, such as a terminal's, do not reach the child. */
  hasOwnGroup?: boolean;
  /** The child begins with the signals blocked that this process has blocked, instead of none. */
  inheritsBlockedSignals?: boolean;
}

/** Starts the program and answers its process id. The child does not get our close-on-exec descriptors. */
export function spawn(program: Program): number {
  const symbols = c();
  // Both structures are opaque; in glibc they take 80 and 336 bytes.
  const actions = new Uint8Array(512), attributes = new Uint8Array(512);
  const pid = new Int32Array(1);
  const succeed = (errno: number) => {
    if (errno !== 0) throw new SyscallError("fork/exec", errno, program.path);
  };
  keepExitStatuses();
  succeed(symbols.posix_spawn_file_actions_init(actions));
  try {
    succeed(symbols.posix_spawnattr_init(attributes));
    succeed(symbols.posix_spawnattr_setsigdefault(attributes, new BigUint64Array(16).fill(IGNORED_BY_BUN, 0, 1)));
    const flags = POSIX_SPAWN_SETSIGDEF | (program.hasOwnGroup ? POSIX_SPAWN_SETPGROUP : 0) |
      (program.inheritsBlockedSignals ? 0 : POSIX_SPAWN_SETSIGMASK);
    succeed(symbols.posix_spawnattr_setflags(attributes, flags));
    program.descriptors.forEach((ours, theirs) => {
      succeed(
        ours === undefined
          ? symbols.posix_spawn_file_actions_addclose(actions, theirs)
          : symbols.posix_spawn_file_actions_adddup2(actions, ours, theirs),
      );
    });
    if (program.inherited !== undefined) {
      const { ours, theirs } = program.inherited;
      succeed(symbols.posix_spawn_file_actions_adddup2(actions, ours, theirs));
    }
    const words = program.argv.map(cString), entries = program.environment.map(withNul);
    const argv = pointersTo(words),
      environment = pointersTo(entries),
      path = cString(program.executed ?? program.path);
    succeed(withInheritedUmask(() => symbols.posix_spawn(pid, path, actions, attributes, argv, environment)));
    // The arrays hold only pointers; this use keeps the strings from being collected until here.
    words.length = entries.length = 0;
    return pid[0]!;
  } finally {
    symbols.posix_spawn_file_actions_destroy(actions);
  }
}

/**
 * If our caller ignored SIGCHLD, the kernel would discard our children's exit statuses. A handler of the program that we
 * are a library of stays.
 */
function keepExitStatuses(): void {
  // struct sigaction begins with the handler.
  const action = new BigUint64Array(32), SIG_IGN = 1n;
  if (c().sigaction(SIGCHLD, null, action) === 0 && action[0] === SIG_IGN) c().signal(SIGCHLD, null);
}

/** With a null pointer behind them, as argv and environ of execve(2). */
function pointersTo(strings: readonly Uint8Array[]): BigUint64Array {
  return new BigUint64Array([...strings.map((bytes) => BigInt(ptr(bytes))), 0n]);
}

function withNul(bytes: Uint8Array): Uint8Array {
  const terminated = new Uint8Array(bytes.length + 1);
  terminated.set(bytes);
  return terminated;
}

export type Ending = { exitStatus: number } | { signal: number };

export function hasSucceeded(ending: Ending): boolean {
  return "exitStatus" in ending && ending.exitStatus === 0;
}

export function describeEnding(ending: Ending): string {
  return "signal" in ending ? `signal ${ending.signal}` : `exit status ${ending.exitStatus}`;
}

export function waitFor(pid: number): Ending {
  return waitpid(pid, 0)!;
}

/** How the child ended, or undefined while it runs. */
export function endingSoFar(pid: number): Ending | undefined {
  const WNOHANG = 1;
  return waitpid(pid, WNOHANG);
}

/** Both ends are closed in children. */
export function openPipe(): [readEnd: number, writeEnd: number] {
  const ends = new Int32Array(2);
  check("pipe", c().pipe2(ends, O_CLOEXEC));
  return [ends[0]!, ends[1]!];
}

/** Readable when the child has ended; negative before Linux 5.3. */
export function openPidfd(pid: number): number {
  return Number(c().syscall(SYS_pidfd_open, pid, 0));
}

interface Children {
  ended: number[];
  areRunning: boolean;
}

let unwaited: number[] = [];

/** For a child whose end does not matter, but of which a process that stays has to take notice. */
export function leaveRunning(pid: number): void {
  unwaited.push(pid);
}

/** Takes notice of those that have ended; answers whether others still run. */
export function areLeftRunning(): boolean {
  unwaited = unwaited.filter((pid) => endingSoFar(pid) === undefined);
  return unwaited.length > 0;
}

/** Waits for nobody; forgets the children that have ended, which a process that stays must do. */
export function forgetEnded(): Children {
  unwaited = [];
  const ANY = -1, WNOHANG = 1, status = new Int32Array(1), ended: number[] = [];
  for (;;) {
    const pid = c().waitpid(ANY, status, WNOHANG);
    if (pid <= 0) return { ended, areRunning: pid === 0 };
    ended.push(pid);
  }
}

function waitpid(pid: number, options: number): Ending | undefined {
  const status = new Int32Array(1);
  if (retrying("waitpid", () => c().waitpid(pid, status, options), `process ${pid}`) === 0) return undefined;
  const signal = status[0]! & 0x7f;
  return signal === 0 ? { exitStatus: (status[0]! >> 8) & 0xff } : { signal };
}

/**
 * Becomes another program (execve(2)). The process stays the same to others; descriptors stay open unless they are
 * closed on execution.
 */
export function execute({ path, argv, environment }: Omit<Program, "descriptors">): never {
  const { execve } = bind({ execve: { args: ["ptr", "ptr", "ptr"], returns: "i32" } });
  const file = cString(path), words = argv.map(cString), entries = environment.map(withNul);
  withInheritedUmask(() => execve(file, pointersTo(words), pointersTo(entries)));
  const errno = lastErrno();
  // This use keeps the texts, to which the arrays hold only pointers, from being collected until here.
  throw new SyscallError("execve", errno, words.length + entries.length > 0 ? path : "");
}
