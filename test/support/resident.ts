/**
 * A resident in a machine (`patchbay serve`). With PATCHBAY_TEST_RESIDENT=1 every machine has one, for its plugins' calls.
 * through-resident.ts counts those that it served.
 */
import { existsSync, readFileSync } from "node:fs";
import type { Subprocess } from "bun";
import { isListening } from "./listening.ts";
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

export const SOCKET = "/run/patchbay/serve.sock";

/** Whether machines have a resident. Files about residents turn it off for themselves. */
export function isThroughResident(): boolean {
  return process.env.PATCHBAY_TEST_RESIDENT === "1";
}

/** What a resident says when it begins to serve, and no more. */
export const BEGUN = new RegExp(`^patchbay: the resident serves calls on ${SOCKET} \\(workers: \\d+\\)\n$`);

export type Resident = Subprocess<"pipe", "pipe", "pipe">;

/** Returns when it listens and its workers are processes; the first call waits until they are ready. */
export async function startResident(machine: Machine, workers?: number, program = PATCHBAY): Promise<Resident> {
  const options = workers === undefined ? [] : [`--workers=${workers}`];
  // It ends with the test's process, however that ends.
  const resident = machine.start(["setpriv", "--pdeathsig", "KILL", program, "serve", ...options]);
  const isReady = () => isListening(machine, SOCKET) && childrenOf(resident.pid).length >= (workers ?? 1);
  while (!isReady()) {
    if (resident.exitCode !== null || !existsSync(`/proc/${resident.pid}/task`)) {
      throw new Error(`the resident ended: ${await resident.stderr.text()}`);
    }
    await Bun.sleep(2);
  }
  return resident;
}

/** None when it has ended. */
export function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return (existsSync(path) ? readFileSync(path, "utf8") : "").split(" ").filter((one) => one !== "").map(Number);
}

/** In poll(2), for a while: it is not busy. */
export function isWaiting(pid: number): boolean {
  const [call, , , timeoutMs] = readFileSync(`/proc/${pid}/syscall`, "utf8").split(" "), POLL = "7";
  return call === POLL && Number(timeoutMs) > 0;
}

/** Signals of a terminal go to a group. */
export function hasOwnGroup(pid: number): boolean {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ")[2] === String(pid);
}
