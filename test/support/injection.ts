/**
 * Injects faults at chosen system calls of a plugin, with strace(1): a kill, or an error instead of the call.
 *
 * A plugin does nothing before it has read its configuration. So it starts with an open stdin, strace attaches while it
 * waits there, and only then the configuration is written. The runtime's own start is neither slowed down nor counted;
 * everything after it is.
 *
 * Each thread and each child process has counters of its own, so any of them can reach `nth`. strace's `--seccomp-bpf` is
 * not used, because it silently skipped kills.
 *
 * In a machine with a resident it is the worker that the faults are injected to, from the moment that it has a caller on.
 */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { textOf } from "./if-there.ts";
import type { Machine } from "./machine.ts";
import { type Call, environmentOf, stdinOf } from "./plugins.ts";
import { childrenOf } from "./resident.ts";
import type { OwnResident } from "./through-resident.ts";

/** The nth time a thread enters the system call, from the read of stdin on. */
export interface Point {
  syscall: string;
  nth: number;
}

export interface Injected {
  /** Undefined when a signal ended the plugin; with a resident, a killed worker's caller goes on by itself. */
  code: number | undefined;
  stdout: string;
  /** Whether the fault was really injected. */
  hit: boolean;
  /** What strace wrote. */
  trace: string;
}

/** Only ends what hangs. */
const LIMIT_MS = 120_000;
/** Under emulation, polling takes processor time from the plugin. */
const POLL_MS = process.env.PATCHBAY_TEST_VM ? 20 : 1;
/** The number of read(2) in asm/unistd.h. */
const READ = process.arch === "arm64" ? 63 : 0;
const LATE_US = 2_000_000;

/** Runs the call under strace with the given arguments; see `killAt`, `failAt`, `lateWith` and `pointsOf`. */
async function traced(
  machine: Machine,
  bin: string,
  call: Call,
  strace: string[],
): Promise<Omit<Injected, "hit"> & { worker?: number }> {
  const environment = Object.entries(environmentOf(bin, call)).map(([name, value]) => `${name}=${value}`);
  const plugin = machine.start(["env", "-i", ...environment, join(bin, call.plugin)]);
  await waitingIn(plugin.pid, READ_STDIN);
  const worker = machine.resident && await idleWorker(machine.resident);
  // Into a file, where each line begins with the process id.
  const file = join(tmpdir(), `patchbay-strace-${plugin.pid}`);
  const tracer = Bun.spawn(["strace", "-f", "-o", file, "-p", String(worker ?? plugin.pid), ...strace], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const chunks: string[] = [];
  const decoder = new TextDecoder();
  const { promise: attached, resolve } = Promise.withResolvers<void>();
  const collected = (async () => {
    for await (const chunk of tracer.stderr) {
      chunks.push(decoder.decode(chunk, { stream: true }));
      resolve();
    }
    resolve();
  })();
  await attached;
  // A plugin that is killed while it reads leaves a broken pipe.
  await (async () => (plugin.stdin.write(stdinOf(call)), await plugin.stdin.end()))().catch(() => {});
  let hung = false;
  const limit = setTimeout(() => {
    hung = true;
    plugin.kill("SIGKILL");
    tracer.kill("SIGKILL");
  }, LIMIT_MS);
  const output = [plugin.stdout.text(), plugin.stderr.text()];
  const ended = plugin.exited.then(async () => {
    if (worker === undefined) return;
    // It lives on, and so would its tracer.
    await waitingIn(worker, WAIT_FOR_CALLERS);
    tracer.kill("SIGTERM");
  });
  const [stdout] = await Promise.all([...output, ended, collected, tracer.exited]) as string[];
  clearTimeout(limit);
  const trace = chunks.join("") + textOf(file);
  rmSync(file, { force: true });
  if (hung) throw new Error(`${call.plugin} ${call.command} with ${strace.join(" ")} did not end:\n${trace}`);
  if (!trace.includes("attached")) throw new Error(`strace did not attach: ${trace}`);
  return { code: plugin.signalCode === null ? plugin.exitCode! : undefined, stdout: stdout!, trace, worker };
}

/** Kills the plugin with SIGKILL as it enters the call, or a child process that gets there first. */
export async function killAt(machine: Machine, bin: string, call: Call, { syscall, nth }: Point): Promise<Injected> {
  const inject = ["-e", `trace=${syscall}`, "-e", `inject=${syscall}:signal=KILL:when=${nth}`];
  const run = await traced(machine, bin, call, inject);
  const hit = run.trace.includes("killed by SIGKILL");
  if (hit) machine.resident?.expectLoss();
  return { ...run, hit };
}

/** Makes the call fail with the error; with `lasting`, all that follow as well. */
export async function failAt(
  machine: Machine,
  bin: string,
  call: Call,
  { syscall, nth }: Point,
  errno: string,
  lasting = false,
): Promise<Injected> {
  const when = lasting ? `${nth}+` : nth;
  const inject = ["-e", `trace=${syscall}`, "-e", `inject=${syscall}:error=${errno}:when=${when}`];
  const run = await traced(machine, bin, call, inject), hit = run.trace.includes("(INJECTED)");
  // A worker may end when a call of its own fails, outside of what it serves.
  if (hit) machine.resident?.expectLoss();
  return { ...run, hit };
}

const alone = (call: Call): Call => ({ ...call, env: { ...call.env, PATCHBAY_RESIDENT: "off" } });

/** Delays every one of these calls, so that another process can act before it. */
export async function lateWith(
  machine: Machine,
  bin: string,
  call: Call,
  syscall: string,
  lateUs = LATE_US,
): Promise<Injected> {
  const inject = ["-e", `trace=${syscall}`, "-e", `inject=${syscall}:delay_enter=${lateUs}`];
  // A worker would have the other process wait for its turn.
  const run = await traced({ ...machine, resident: undefined }, bin, alone(call), inject);
  return { ...run, hit: run.trace.includes("(DELAYED)") };
}

/**
 * A call that the kernel restarts by itself: writing a sysctl while another process holds the lock on the network's
 * configuration. strace's `nth` counts each restart, so a fault may hit an earlier call.
 */
const RESTARTED = /= \? ERESTART/;

/** Every system call of the main thread, in order, with strace's line for it. */
export async function pointsOf(machine: Machine, bin: string, call: Call): Promise<(Point & { line: string })[]> {
  const { trace, code, worker } = await traced(machine, bin, call, ["-e", "trace=all"]);
  if (code !== 0) throw new Error(`the traced ${call.plugin} ${call.command} failed:\n${trace}`);
  const counts = new Map<string, number>();
  const points = [];
  let main = worker?.toString();
  for (const line of trace.split("\n")) {
    const [, pid, syscall] = line.match(/^(\d+) +([a-z_0-9]+)\(/) ?? [];
    if (syscall === undefined) continue;
    if (main === undefined && /read\(0,/.test(line)) main = pid;
    if (main !== pid || RESTARTED.test(line) || line.includes("resuming interrupted")) continue;
    const nth = (counts.get(syscall) ?? 0) + 1;
    counts.set(syscall, nth);
    points.push({ syscall, nth, line });
  }
  return points;
}

const READ_STDIN = new RegExp(`^${READ} 0x0 `);
/** epoll_wait for two descriptors: the socket, and whether the parent lives. */
const WAIT_FOR_CALLERS = process.arch === "arm64" ? /^22 \S+ \S+ 0x2 / : /^232 \S+ \S+ 0x2 /;

/** Returns when the process waits there, or is no more. */
async function waitingIn(pid: number, syscall: RegExp): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  while (performance.now() < deadline) {
    const now = textOf(`/proc/${pid}/syscall`);
    if (now === "" || syscall.test(now)) return;
    await Bun.sleep(POLL_MS);
  }
  throw new Error(`process ${pid} does not wait in ${syscall.source}`);
}

/** One may have been killed a moment ago. */
async function idleWorker(resident: OwnResident): Promise<number> {
  for (;;) {
    const [worker] = childrenOf(resident.pid);
    if (worker !== undefined) {
      await waitingIn(worker, WAIT_FOR_CALLERS);
      if (childrenOf(resident.pid).includes(worker)) return worker;
    }
    await Bun.sleep(POLL_MS);
  }
}
