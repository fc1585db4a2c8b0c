/**
 * SIGINT and SIGTERM as an error of the work that they interrupt, so that it takes back what it has begun.
 *
 * There is no handler. The program's first code blocks them where a command may take back (native/entry.c), because the
 * runtime's threads begin before this, and they are read from a descriptor (signals.ts). In a library nobody takes them, and
 * nothing here does anything; nor in a resident, whose signals are its own, and which sees that its caller is gone.
 */
import { poll, POLLIN } from "../ffi/poll.ts";
import { isHandedOver } from "./calls.ts";
import { warn } from "./warn.ts";

/** Loaded by the commands that take back. */
const loadSignals = () => require("../ffi/signals.ts") as typeof import("../ffi/signals.ts");

export class Interrupted extends Error {
  constructor(readonly signal: number) {
    super(`interrupted by ${signalName(signal)}`);
  }
}

export function signalName(signal: number): string {
  return signal === loadSignals().SIGINT ? "SIGINT" : "SIGTERM";
}

let descriptor = -1, first: number | undefined, interrupting: number | undefined;
let isTakingBack = false, isTold = false;

/** Takes SIGINT and SIGTERM where this process was begun with them blocked, and not where it was told to ignore them. */
export function takeInterruptions(): void {
  if (isHandedOver()) return;
  const { blockedAmong, openSignals, SIGINT, SIGTERM } = loadSignals();
  const signals = blockedAmong([SIGINT, SIGTERM]);
  if (signals.length > 0) descriptor = openSignals(signals);
}

/** For a process that was begun with them blocked, and takes nothing back. */
export function releaseInterruptions(): void {
  if (isHandedOver()) return;
  const { SIGINT, SIGTERM, unblockSignals } = loadSignals();
  unblockSignals([SIGINT, SIGTERM]);
}

/** From here on the work is completed first. */
export function postponeInterruptions(): void {
  const { blockSignals, SIGINT, SIGTERM } = loadSignals();
  if (!isHandedOver()) blockSignals([SIGTERM, SIGINT]);
}

/** Whether a signal from a terminal must not end the programs that this process runs, either. */
export function areInterruptionsTaken(): boolean {
  return descriptor >= 0;
}

/** For poll(2): readable when the work is to be interrupted; negative when nothing interrupts it. */
export function interruptionDescriptor(): number {
  return isTakingBack ? -1 : descriptor;
}

/** Throws when a signal has come, once. What follows takes back, and nothing interrupts that. */
export function throwIfInterrupted(): void {
  if (descriptor < 0 || isTakingBack) return;
  hasCome();
  if (first === undefined) return;
  ignoreInterruptions();
  interrupting = first;
  throw new Interrupted(first);
}

/** Until the descriptor is ready, or its other end is closed. Waits for nothing where nothing interrupts. */
export function awaitReady(fd: number, events: number): void {
  if (interruptionDescriptor() < 0) return;
  while (!poll([{ fd, events }, { fd: descriptor, events: POLLIN }], -1).has(fd)) throwIfInterrupted();
}

/** From here on, what was begun is taken back, or there is nothing more to take back. */
export function ignoreInterruptions(): void {
  isTakingBack = true;
}

/** The signal that has interrupted the work. */
export function interruptedBy(): number | undefined {
  return interrupting;
}

/** For poll(2): readable when a signal has come, of which `endsProgram` says what it means for a program that runs. */
export function signalDescriptor(): number {
  return descriptor;
}

/**
 * Whether a signal has come that ends the program which this process waits for: the first one where the work may be
 * interrupted. Otherwise the next one says that a third will, for programs that never end.
 */
export function endsProgram(path: string, isInterruptible: boolean): boolean {
  const isFirst = first === undefined;
  if (!hasCome()) return false;
  if (isFirst && !isTakingBack) return isInterruptible;
  if (isTold) return true;
  isTold = true;
  warn(`waiting for ${path}, which one more signal ends`);
  return false;
}

function hasCome(): boolean {
  const [signal] = loadSignals().readSignals(descriptor);
  first ??= signal;
  return signal !== undefined;
}
