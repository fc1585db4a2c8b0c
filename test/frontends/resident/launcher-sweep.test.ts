/**
 * The launcher, the first code of every call, while a resident serves: it is killed at every system call it makes, and
 * every one of them fails once. A killed call leaves nothing behind its DEL; one with a failure succeeds. So is it while
 * it looks whether the resident's only worker, which is stopped, will take the call.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine, type Outcome } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { environmentOf, patchbayPlugins } from "../../support/plugins.ts";
import { childrenOf, slotsOf, startResident } from "../../support/resident.ts";
import { untilTrue } from "../../support/until-true.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const ipam = { type: "host-local", subnet: "10.1.0.0/24" };
const conf = { cniVersion: "1.1.0", name: "net", type: "bridge", isGateway: true, ipMasq: true, ipam };
const isFullSweep = process.env.PATCHBAY_TEST_FULL_SWEEP === "1";

/** Not at the end, which is no call that returns, and not where strace begins the program. */
const NO_POINTS = /^(execve|exit_group)$/;
/** What a kernel under pressure, a filter of system calls, or a signal can make of any call. */
const ERRORS = ["ENOSYS", "EMFILE", "ENOMEM", "EINTR", "EAGAIN"];

interface Point {
  syscall: string;
  nth: number;
}

interface Stage extends AsyncDisposable {
  machine: Machine;
  container: Container;
  /** Stdin is a pipe, which the launcher copies: it makes the most system calls then. */
  traced(command: string, strace: readonly string[]): Promise<Outcome & { trace: string }>;
  /** Runs `work` while the worker takes no calls. */
  whileStopped<T>(work: () => Promise<T>): Promise<T>;
  del(): Promise<void>;
  left(): Promise<string[]>;
}

async function openStage(): Promise<Stage> {
  const machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  const resident = await startResident(machine, 1);
  await net.once(container);
  const moment = await quietMoment(machine);
  const end = async () => {
    resident.kill("SIGKILL");
    await resident.exited;
    await machine[Symbol.asyncDispose]();
  };
  return {
    machine,
    container,
    async traced(command, strace) {
      const call = { plugin: "bridge", command, container, conf };
      const env = { ...environmentOf(patchbayPlugins(), call), TEXT: JSON.stringify(conf) };
      const program = `${patchbayPlugins()}/bridge`;
      const script = `printf %s "$TEXT" | strace -o /run/trace ${strace.join(" ")} ${program}`;
      const outcome = await machine.run(["sh", "-c", script], { env });
      return { ...outcome, trace: await machine.sh("cat /run/trace; rm /run/trace") };
    },
    async whileStopped(work) {
      const [worker] = childrenOf(resident.pid);
      await untilTrue(() => slotsOf(resident.pid)[0]!.sinceMs, (since) => since === 0);
      process.kill(worker!, "SIGSTOP");
      const state = () => readFileSync(`/proc/${worker}/stat`, "utf8").split(") ").at(-1)![0];
      await untilTrue(state, (now) => now === "T");
      try {
        return await work();
      } finally {
        process.kill(worker!, "SIGCONT");
      }
    },
    del: () => net.del(container),
    left: () => leftSince(moment, machine),
    [Symbol.asyncDispose]: end,
  };
}

const LOOKED = "serve~board", RAN_BY_ITSELF = "ld-linux";

/** What the launcher calls while it is served, at once: on a busy machine it may look at the board. */
async function pointsOf(stage: Stage, command: "ADD" | "DEL"): Promise<Point[]> {
  const { trace } = await untilTrue(async () => {
    if (command === "DEL") await stage.traced("ADD", []);
    const traced = await stage.traced(command, []);
    if (command === "ADD") await stage.del();
    return traced;
  }, (traced) => traced.code === 0 && !traced.trace.includes(LOOKED) && !traced.trace.includes(RAN_BY_ITSELF));
  return pointsIn(trace);
}

function pointsIn(trace: string): Point[] {
  const counts = new Map<string, number>();
  return [...trace.matchAll(/^([a-z_0-9]+)\(/gm)].map(([, name]) => name!).filter((name) => !NO_POINTS.test(name))
    .map((syscall) => {
      const nth = (counts.get(syscall) ?? 0) + 1;
      counts.set(syscall, nth);
      return { syscall, nth };
    });
}

test.each(["ADD", "DEL"] as const)("killed at every system call: DEL leaves nothing of %s", async (command) => {
  await using stage = await openStage();
  const points = await pointsOf(stage, command);
  await stage.del();
  expect(points.length).toBeGreaterThan(12);
  const wrong: string[] = [];
  for (const { syscall, nth } of points) {
    if (command === "DEL") await stage.traced("ADD", []);
    const { trace } = await stage.traced(command, ["-e", `inject=${syscall}:signal=KILL:when=${nth}`]);
    const isKilled = trace.includes("killed by SIGKILL");
    await stage.del();
    const left = await stage.left();
    if (!isKilled) wrong.push(`${syscall} ${nth}: not reached`);
    wrong.push(...left.map((line) => `${syscall} ${nth}: ${line}`));
  }
  expect(wrong).toEqual([]);
});

test.each(["ADD", "DEL"] as const)("every system call of it fails once: %s succeeds", async (command) => {
  await using stage = await openStage();
  const points = await pointsOf(stage, command);
  await stage.del();
  const wrong: string[] = [];
  let hits = 0, total = 0;
  for (const [index, { syscall, nth }] of points.entries()) {
    for (const error of ERRORS.filter((_, turn) => isFullSweep || turn % 2 === index % 2)) {
      total++;
      if (command === "DEL") await stage.traced("ADD", []);
      const { trace, code, stdout } = await stage.traced(command, [
        "-e",
        `inject=${syscall}:error=${error}:when=${nth}`,
      ]);
      if (trace.includes("(INJECTED)")) hits++;
      const isRight = code === 0 && (command === "DEL" ? stdout === "" : JSON.parse(stdout).ips.length === 1);
      if (!isRight) wrong.push(`${syscall} ${nth} ${error}: ${code} ${stdout}`);
      await stage.del();
      wrong.push(...(await stage.left()).map((line) => `${syscall} ${nth} ${error}: ${line}`));
    }
  }
  expect(wrong).toEqual([]);
  expect(hits).toBe(total);
});

test("killed, or failing, while it looks for workers", async () => {
  await using stage = await openStage();
  const { trace } = await stage.whileStopped(() => stage.traced("ADD", []));
  await stage.del();
  const points = pointsIn(trace.slice(0, trace.indexOf("mprotect(")));
  const beforeLooking = pointsIn(trace.slice(0, trace.indexOf(LOOKED))).length - 1;
  expect(points.slice(beforeLooking).map(({ syscall }) => syscall)).toEqual(
    expect.arrayContaining(["openat", "read", "close", "clock_gettime", "shutdown"]),
  );
  const wrong: string[] = [];
  for (const { syscall, nth } of points.slice(beforeLooking)) {
    for (const injection of ["signal=KILL", ...ERRORS.map((error) => `error=${error}`)]) {
      const strace = ["-e", `inject=${syscall}:${injection}:when=${nth}`];
      const { trace: said, code } = await stage.whileStopped(() => stage.traced("ADD", strace));
      const isRight = injection.startsWith("error") ? code === 0 : said.includes("killed by SIGKILL");
      await stage.del();
      const left = await stage.left();
      if (!isRight) wrong.push(`${syscall} ${nth} ${injection}: ${code}`);
      wrong.push(...left.map((line) => `${syscall} ${nth} ${injection}: ${line}`));
    }
  }
  expect(wrong).toEqual([]);
});
