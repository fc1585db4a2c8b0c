/**
 * A resident in a machine (`patchbay serve`). With PATCHBAY_TEST_RESIDENT=1 every machine has one, for its plugins' calls.
 * through-resident.ts counts those that it served.
 */
import { existsSync, readFileSync } from "node:fs";
import { expect } from "bun:test";
import type { Subprocess } from "bun";
import { textOf } from "./if-there.ts";
import { isListening } from "./listening.ts";
import type { Machine } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

export const SOCKET = "/run/patchbay/serve.sock";
export const BOARD = "/run/patchbay/serve~board", TURNS = "/run/patchbay/serve~turns";

/** Whether machines have a resident. Files about residents turn it off for themselves. */
export function isThroughResident(): boolean {
  return process.env.PATCHBAY_TEST_RESIDENT === "1";
}

/** What a resident says when it begins to serve, and no more. */
export const BEGUN = new RegExp(
  `^patchbay: the resident serves calls on ${SOCKET} \\(workers: \\d+( to \\d+)?\\)\n$`,
);

export type Resident = Subprocess<"pipe", "pipe", "pipe">;

/** Returns when it listens and its workers are ready. */
export async function startResident(machine: Machine, workers = 2, program = PATCHBAY): Promise<Resident> {
  const resident = startServe(machine, [`--workers=${workers}`], program);
  const isReady = () => isListening(machine, SOCKET) && readyWorkersOf(resident.pid) >= workers;
  while (!isReady()) {
    if (resident.exitCode !== null || !existsSync(`/proc/${resident.pid}/task`)) {
      throw new Error(`the resident ended: ${await resident.stderr.text()}`);
    }
    await Bun.sleep(2);
  }
  return resident;
}

/** It ends with the test's process, however that ends. Its workers rehearse nothing, which would take half a second. */
export function startServe(machine: Machine, options: readonly string[], program = PATCHBAY): Resident {
  return machine.start(["setpriv", "--pdeathsig", "KILL", program, "serve", "--rehearsals=0", ...options]);
}

/** The process ends as it should when it is told to. */
export async function terminate(process: Pick<Resident, "kill" | "exited">): Promise<void> {
  process.kill("SIGTERM");
  expect(await process.exited).toBe(0);
}

/** What the board says of a worker. */
export interface Slot {
  process: number;
  sinceMs: number;
  calls: number;
}

/** Workers of another resident do not count; its board may still be there. */
export function readyWorkersOf(resident: number): number {
  const children = childrenOf(resident);
  return slotsOf(resident).filter(({ process }) => children.includes(process)).length;
}

/** None where there is no board. */
export function slotsOf(resident: number): Slot[] {
  const path = `/proc/${resident}/root${BOARD}`;
  const bytes = contentOf(path), slots: Slot[] = [];
  for (let at = 0; at + 16 <= bytes.length; at += 16) {
    const [process, sinceMs, calls] = [0, 4, 8].map((offset) => bytes.readUInt32LE(at + offset)) as [
      number,
      number,
      number,
    ];
    slots.push({ process, sinceMs, calls });
  }
  return slots;
}

/** Empty where there is none; it may go at any moment. */
function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

/** None when it has ended. */
export function childrenOf(pid: number): number[] {
  return textOf(`/proc/${pid}/task/${pid}/children`).split(" ").filter((one) => one !== "").map(Number);
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
