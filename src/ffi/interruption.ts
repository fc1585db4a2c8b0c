/**
 * SIGINT and SIGTERM as an error of the work that they interrupt, so that it takes back what it has begun.
 *
 * There is no handler. The program's first code blocks them for the commands that take back (native/entry.c), because the
 * runtime's threads begin before this, and they are read from a descriptor (signals.ts). Elsewhere, as in a library or a
 * resident, nobody takes them, and nothing here does anything.
 */
/** Loaded by the commands that take back. */
const loadSignals = () => require("./signals.ts") as typeof import("./signals.ts");

export class Interrupted extends Error {
  constructor(readonly signal: number) {
    super(`interrupted by ${nameOf(signal)}`);
  }
}

export function nameOf(signal: number): string {
  return signal === loadSignals().SIGINT ? "SIGINT" : "SIGTERM";
}

let areTaken = false, descriptor = -1, noticed: number | undefined;

/** Of the two, those that this process was begun with blocked: not what it was told to ignore. */
export function takeInterruptions(): void {
  const { blockedAmong, openSignals, SIGINT, SIGTERM } = loadSignals();
  const signals = blockedAmong([SIGINT, SIGTERM]);
  if (signals.length === 0) return;
  descriptor = openSignals(signals);
  areTaken = true;
}

/** Whether a signal from a terminal must not end the programs that this process runs, either. */
export function areInterruptionsTaken(): boolean {
  return areTaken;
}

/** For poll(2): readable when a signal has come; negative when nothing is to be interrupted. */
export function interruptionDescriptor(): number {
  return descriptor;
}

/** Throws when a signal has come, once. What follows takes back, and nothing interrupts that. */
export function heedInterruption(): void {
  if (descriptor < 0) return;
  const [signal] = loadSignals().readSignals(descriptor);
  if (signal === undefined) return;
  ignoreInterruptions();
  noticed = signal;
  throw new Interrupted(signal);
}

/** From here on, what was begun is taken back, or there is nothing more to take back. */
export function ignoreInterruptions(): void {
  descriptor = -1;
}

/** The signal that has interrupted the work. */
export function interruptedBy(): number | undefined {
  return noticed;
}
