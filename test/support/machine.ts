/**
 * A machine to break: a network and a mount namespace of its own, with private /run, /var/lib and /sys. Containers
 * are named network namespaces made inside. Nothing a test does here reaches the machine it runs on.
 *
 * A holder process keeps the namespaces alive for as long as its stdin is open, so they also end with a test
 * process that dies. Every command enters them through nsenter(1), which becomes the command without a fork.
 *
 *     await using machine = await openMachine();
 *     const container = await machine.container("c1");
 */
import { readdirSync, readlinkSync } from "node:fs";
import type { Subprocess } from "bun";
import { setDefaultTimeout } from "bun:test";
import { patienceMs } from "./patience.ts";

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

export interface Machine extends AsyncDisposable {
  /** A process inside; for namespaces by `/proc/<pid>/ns/net`. */
  readonly pid: number;
  run(command: readonly string[], options?: RunOptions): Promise<Outcome>;
  /** Starts it with open pipes; whoever calls waits for its end. Its environment is PATH alone. */
  start(command: readonly string[]): Subprocess<"pipe", "pipe", "pipe">;
  /** Runs a shell script that must succeed, and answers its output. */
  sh(script: string, options?: RunOptions): Promise<string>;
  /** Makes a container with its loopback down, as engines do. */
  container(name?: string): Promise<Container>;
  /** Also when its namespace went before, and whatever stands in its place. */
  removeContainer(container: Container): Promise<void>;
  readonly containers: readonly Container[];
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Only ends what hangs. */
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

/** Machines opened and not closed: what a suite that is done must have none of. */
const open = new Set<Machine>();

export function openMachines(): number {
  return open.size;
}

export async function openMachine(): Promise<Machine> {
  const holder = Bun.spawn(["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", setUp], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
    env: { PATH },
  });
  const { value } = await holder.stdout.getReader().read();
  if (value === undefined) throw new Error("the machine's namespaces could not be set up: root is needed");
  const containers: Container[] = [];
  const enter = ["nsenter", `--net=/proc/${holder.pid}/ns/net`, `--mount=/proc/${holder.pid}/ns/mnt`];

  const machine: Machine = {
    pid: holder.pid,
    containers,
    async run(command, options = {}) {
      // The container's namespace is found by its name, which exists only in the machine's mount namespace.
      const inner = options.in === undefined ? [] : ["nsenter", `--net=${options.in.netnsPath}`];
      return await run([...enter, ...inner, ...command], options);
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
      const left = await processesLeft(holder);
      for (const { pid } of left) process.kill(pid, "SIGKILL");
      await holder.stdin.end();
      await holder.exited;
      open.delete(machine);
      if (left.length > 0) throw new Error(`processes left behind: ${left.map(({ what }) => what).join(", ")}`);
    },
  };
  open.add(machine);
  return machine;
}

async function run(command: string[], options: RunOptions): Promise<Outcome> {
  const child = Bun.spawn(command, {
    stdin: options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH, ...options.env },
    timeout: COMMAND_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code: statusOf(child), stdout, stderr };
}

function statusOf(child: Subprocess): number {
  if (child.signalCode === null) return child.exitCode!;
  const numbers: Record<string, number> = {
    SIGKILL: 9,
    SIGTERM: 15,
    SIGSEGV: 11,
    SIGABRT: 6,
    SIGBUS: 7,
    SIGPIPE: 13,
  };
  return 128 + (numbers[child.signalCode] ?? 0);
}

/** Processes of the machine besides its holder. A teardown that finishes behind DEL gets a moment to end. */
async function processesLeft(holder: Subprocess) {
  const deadline = performance.now() + 2 * patienceMs();
  for (;;) {
    const isLate = performance.now() > deadline;
    const left = processesIn(readlinkSync(`/proc/${holder.pid}/ns/mnt`)).filter(({ pid }) => pid !== holder.pid);
    if (left.length === 0 || isLate) return left;
    await Bun.sleep(20);
  }
}

function processesIn(mountNamespace: string): { pid: number; what: string }[] {
  const found = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^[0-9]+$/.test(entry)) continue;
    try {
      if (readlinkSync(`/proc/${entry}/ns/mnt`) !== mountNamespace) continue;
      found.push({ pid: Number(entry), what: `${entry} ${readlinkSync(`/proc/${entry}/exe`)}` });
    } catch {
      // Ended while we looked, or a zombie.
    }
  }
  return found;
}
