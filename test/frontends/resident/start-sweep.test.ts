/**
 * The resident's parent is killed at the system calls of its start, from when it looks for another resident until its
 * worker runs. Whatever it leaves: calls succeed, and the next resident starts and serves.
 */
import { expect, test } from "bun:test";
import { isListening } from "../../support/listening.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { childrenOf, SOCKET, startResident } from "../../support/resident.ts";
import { untilServed } from "../../support/served.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const every = process.env.PATCHBAY_TEST_FULL_SWEEP === "1" ? 1 : 2;

/** Its own threads and memory; how many of these it makes differs from run to run. */
const OF_THE_RUNTIME = /^(futex|madvise|mmap|munmap|mprotect|brk|getpid|sched_\w+|clock_\w+)$/;

interface Point {
  syscall: string;
  nth: number;
}

/** Undefined also when the process has ended, which it may at any moment. */
function childOf(pid: number): number | undefined {
  try {
    return childrenOf(pid)[0];
  } catch {
    return undefined;
  }
}

/** Starts a resident under strace, until it is killed, or serves; then it is killed here. */
async function traceStart(
  machine: Machine,
  strace: readonly string[],
): Promise<{ trace: string; hasServed: boolean }> {
  const tracer = machine.start(["strace", "-o", "/run/trace", ...strace, PATCHBAY, "serve", "--workers=1"]);
  let hasEnded = false, hasServed = false;
  void tracer.exited.then(() => hasEnded = true);
  while (!hasEnded) {
    const parent = childOf(tracer.pid);
    if (parent !== undefined && isListening(machine, SOCKET) && childOf(parent) !== undefined) {
      hasServed = true;
      process.kill(parent, "SIGKILL");
      await tracer.exited;
    }
    await Bun.sleep(2);
  }
  return { trace: await machine.sh("cat /run/trace; rm /run/trace"), hasServed };
}

async function pointsOf(machine: Machine): Promise<Point[]> {
  const lines = (await traceStart(machine, [])).trace.split("\n"), counts = new Map<string, number>();
  const points = lines.flatMap((line) => {
    const syscall = line.match(/^([a-z_0-9]+)\(/)?.[1];
    if (syscall === undefined) return [];
    const nth = (counts.get(syscall) ?? 0) + 1;
    counts.set(syscall, nth);
    return [{ syscall, nth, line }];
  });
  const looks = points.findIndex(({ syscall, line }) => syscall === "connect" && line.includes(SOCKET));
  return points.slice(looks).filter(({ syscall }) => !OF_THE_RUNTIME.test(syscall));
}

test("killed at every system call of its start", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, { type: "host-local", ipam: { type: "host-local", subnet: "10.1.0.0/24" } });
  const points = (await pointsOf(machine)).filter((_, index) => index % every === 0);
  expect(points.length).toBeGreaterThan(8);
  let kills = 0;
  for (const { syscall, nth } of points) {
    const { hasServed } = await traceStart(machine, ["-e", `inject=${syscall}:signal=KILL:when=${nth}`]);
    if (!hasServed) kills++;
    await net.once(container);
  }
  console.log(`killed at ${kills} of ${points.length} points`);
  expect(kills).toBeGreaterThan(points.length * 0.8);
  await using _resident = await startResident(machine, 1);
  await untilServed(machine);
});
