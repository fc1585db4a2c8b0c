/**
 * A machine for one test: a network and a mount namespace, with private /run, /var/lib and /sys. Its containers are named
 * network namespaces. Nothing that a test does in it reaches the host.
 *
 * A holder process keeps the namespaces alive while its stdin is open, so they also end when the test process dies. Every
 * command enters them through nsenter(1), which executes the command without a fork.
 *
 *     await using machine = await openMachine();
 *     const container = await machine.container("c1");
 */
import { readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import type { Subprocess } from "bun";
import { setDefaultTimeout } from "bun:test";
import { patienceMs } from "./patience.ts";
import { isThroughResident } from "./resident.ts";
import { countingServed, OwnResident } from "./through-resident.ts";

// No test asserts a time, and a machine may be slow: the limit only ends what hangs.
setDefaultTimeout(300_000);

export interface Outcome {
  /** Exit status, or 128 + signal when a signal ended it. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  stdin?: string;
  /** The whole environment; PATH is added when it has none. */
  env?: Record<string, string>;
  /** Runs in the container's network namespace, with the machine's files. */
  in?: Container;
}

export interface Container {
  readonly name: string;
  readonly netnsPath: string;
}

/** A program of the machine's own, which ends with it. */
export interface Service extends AsyncDisposable {
  /** What an attachment may leave there, as lines (leftovers.ts). */
  holds(): Promise<string[]>;
}

export interface Machine extends AsyncDisposable {
  /** A process inside, for paths such as `/proc/<pid>/ns/net`. */
  readonly pid: number;
  /** For what is called in it, with PATCHBAY_TEST_RESIDENT=1. */
  readonly resident: OwnResident | undefined;
  run(command: readonly string[], options?: RunOptions): Promise<Outcome>;
  /** Starts a command with open pipes and only PATH in its environment. The caller waits for its end. */
  start(command: readonly string[]): Subprocess<"pipe", "pipe", "pipe">;
  /** Runs a shell script that must succeed, and returns its output. */
  sh(script: string, options?: RunOptions): Promise<string>;
  /** Makes a container with its loopback down, as engines do. */
  container(name?: string): Promise<Container>;
  /** Works also when the namespace is gone, or something else is at its path. */
  removeContainer(container: Container): Promise<void>;
  readonly containers: readonly Container[];
  readonly services: Set<Service>;
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Only ends commands that hang. */
const COMMAND_TIMEOUT_MS = 180_000;

const setUp = `
set -e
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t sysfs sysfs /sys
mkdir -p /run/netns /var/lib/cni
ip link set lo up
echo ready
exec cat
`;

/** In a user namespace: who runs the test is root, and others are nobody outside. */
const MAPPED = "0 0 1\n1 100001 65535\n";
const untilMapped = "echo unshared; read -r _";

export interface MachineOptions {
  /** In a user namespace of its own, as rootless engines make one: root there, and nobody outside of it. */
  isRootless?: boolean;
}

export async function openMachine({ isRootless = false }: MachineOptions = {}): Promise<Machine> {
  const own = ["--net", "--mount", ...isRootless ? ["--user", "--cgroup"] : [], "--propagation", "private"];
  const script = isRootless ? untilMapped + setUp : setUp;
  const holder = Bun.spawn(["unshare", ...own, "sh", "-c", script], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
    env: { PATH },
  });
  const said = holder.stdout.getReader();
  if (isRootless) {
    await said.read();
    for (const ids of ["uid", "gid"]) writeFileSync(`/proc/${holder.pid}/${ids}_map`, MAPPED);
    holder.stdin.write("\n");
    await holder.stdin.flush();
  }
  const { value } = await said.read();
  if (value === undefined) throw new Error("the machine's namespaces could not be set up: root is needed");
  const containers: Container[] = [];
  const namespace = (kind: string, option: string) => `--${option}=/proc/${holder.pid}/ns/${kind}`;
  const others = [namespace("mnt", "mount")];
  if (isRootless) others.push(namespace("user", "user"), namespace("cgroup", "cgroup"), "--preserve-credentials");
  const enter = ["nsenter", `--net=/proc/${holder.pid}/ns/net`, ...others];

  const machine: Machine & { resident: OwnResident | undefined } = {
    resident: undefined,
    pid: holder.pid,
    containers,
    services: new Set(),
    async run(command, options = {}) {
      if (options.in === undefined) {
        return await countingServed(command, options, (more) => run([...enter, ...command], more));
      }
      return await run(
        ["nsenter", `--net=${netnsFromOutside(holder.pid, options.in)}`, ...others, ...command],
        options,
      );
    },
    start(command) {
      return Bun.spawn([...enter, ...command], { stdin: "pipe", stdout: "pipe", stderr: "pipe", env: { PATH } });
    },
    async sh(script, options) {
      const outcome = await machine.run(["sh", "-ec", script], options);
      if (outcome.code !== 0) throw new Error(`exit ${outcome.code}: ${outcome.stderr || outcome.stdout}\n${script}`);
      return outcome.stdout;
    },
    async container(name = `c${containers.length + 1}`) {
      await machine.sh(`ip netns add ${name}`);
      const container = { name, netnsPath: `/var/run/netns/${name}` };
      containers.push(container);
      return container;
    },
    async removeContainer(container) {
      containers.splice(containers.indexOf(container), 1);
      await machine.sh(`ip netns del ${container.name} 2>/dev/null || rm -f ${container.netnsPath}`);
    },
    async [Symbol.asyncDispose]() {
      const trouble = await machine.resident?.end();
      for (const service of machine.services) await service[Symbol.asyncDispose]();
      const left = await processesLeft(holder);
      for (const { pid } of left) process.kill(pid, "SIGKILL");
      await holder.stdin.end();
      await holder.exited;
      if (left.length > 0) throw new Error(`processes left behind: ${left.map(({ what }) => what).join(", ")}`);
      if (trouble !== undefined) throw new Error(trouble);
    },
  };
  if (isThroughResident()) machine.resident = await OwnResident.start(machine);
  return machine;
}

/** A container's path exists only in the machine's mount namespace, where /var/run is a link to /run. */
export function netnsFromOutside(machinePid: number, { netnsPath }: Container): string {
  return `/proc/${machinePid}/root${netnsPath.replace(/^\/var\/run\//, "/run/")}`;
}

let runs = 0;

async function run(command: string[], options: RunOptions): Promise<Outcome> {
  // In turn a file in memory, as Bun makes it of bytes, and a pipe, as engines do it: the launcher copies that first.
  const isPiped = runs++ % 2 === 0 && options.stdin !== undefined;
  const bytes = options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin);
  const child = Bun.spawn(command, {
    stdin: isPiped ? "pipe" : bytes,
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH, ...options.env },
    timeout: COMMAND_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
    isPiped ? give(child.stdin as Bun.FileSink, options.stdin!) : undefined,
  ]);
  return { code: statusOf(child), stdout, stderr };
}

/** A command that ends without having read it leaves a broken pipe. */
async function give(stdin: Bun.FileSink, text: string): Promise<void> {
  try {
    stdin.write(text);
    await stdin.end();
  } catch (error) {
    if ((error as { code?: string }).code !== "EPIPE") throw error;
  }
}

function statusOf(child: Subprocess): number {
  return child.signalCode === null ? child.exitCode! : 128 + constants.signals[child.signalCode as NodeJS.Signals];
}

/** Processes in the machine other than its holder. A child that DEL leaves to finish gets a moment to end. */
async function processesLeft(holder: Subprocess) {
  const deadline = performance.now() + 2 * patienceMs();
  for (;;) {
    const isLate = performance.now() > deadline;
    const left = processesIn(readlinkSync(`/proc/${holder.pid}/ns/mnt`)).filter(({ pid }) => pid !== holder.pid);
    if (left.length === 0 || isLate) return left;
    await Bun.sleep(20);
  }
}

/** In a machine, its holder too; `what` is the number with the program's path. */
export function processesOf(machine: Machine): { pid: number; what: string }[] {
  return processesIn(readlinkSync(`/proc/${machine.pid}/ns/mnt`));
}

function processesIn(mountNamespace: string): { pid: number; what: string }[] {
  const found = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^[0-9]+$/.test(entry)) continue;
    try {
      if (readlinkSync(`/proc/${entry}/ns/mnt`) !== mountNamespace) continue;
      found.push({ pid: Number(entry), what: `${entry} ${readlinkSync(`/proc/${entry}/exe`)}` });
    } catch {
      // It ended meanwhile, or is a zombie.
    }
  }
  return found;
}
