/** A resident of a test, and whether it serves what is called. */
import { expect } from "bun:test";
import type { Machine, Outcome, RunOptions } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";
import { childrenOf, startResident } from "./resident.ts";

export interface Resident extends AsyncDisposable {
  workers(): number[];
  kill(signal: NodeJS.Signals): Promise<void>;
}

export async function openResident(machine: Machine, workers?: number): Promise<Resident> {
  const resident = await startResident(machine, workers);
  const children = () => childrenOf(resident.pid);
  const kill = async (signal: NodeJS.Signals) => {
    resident.kill(signal);
    await resident.exited;
  };
  return { workers: children, kill, [Symbol.asyncDispose]: () => kill("SIGKILL") };
}

/** Serves when it is returned. */
export async function openServing(machine: Machine, workers?: number): Promise<Resident> {
  const resident = await openResident(machine, workers);
  await untilServed(machine);
  return resident;
}

export async function untilServed(machine: Machine): Promise<void> {
  for (let count = 0; count < 200; count++) if (await traceOf(machine) === "served") return;
  throw new Error("the resident serves nothing");
}

/** A command under a tracer, which must succeed. */
export async function traceOf(
  machine: Machine,
  options: RunOptions = {},
  words: readonly string[] = ["version"],
): Promise<"served" | "alone"> {
  const { stderr, code } = await machine.run(["strace", "-e", "trace=openat", PATCHBAY, ...words], options);
  expect([words, code, stderr]).toEqual([words, 0, expect.anything()]);
  return stderr.includes("ld-linux") ? "alone" : "served";
}

/** Makes the call while the only worker that accepts calls dies of the injection. */
export async function whileDying<Answer extends Outcome>(
  machine: Machine,
  resident: Resident,
  injection: string,
  call: () => Promise<Answer>,
): Promise<Answer> {
  const [worker, ...others] = resident.workers();
  for (const pid of others) process.kill(pid, "SIGSTOP");
  const words = ["strace", "-qq", "-o", "/dev/null", "-e", `inject=${injection}`, "-p", String(worker)];
  const tracer = machine.start(words);
  await machine.sh(`until grep -q "TracerPid:.*[1-9]" /proc/${worker}/status; do sleep 0.01; done`);
  const outcome = await call();
  for (const pid of others) process.kill(pid, "SIGCONT");
  // It ends with the worker; one that has not died is told so.
  tracer.kill("SIGINT");
  await tracer.exited;
  expect(resident.workers()).not.toContain(worker);
  return outcome;
}
