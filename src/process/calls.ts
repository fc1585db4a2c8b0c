/**
 * The call that this process runs: its own or, in a resident, one that another process handed over. What modules keep
 * during a call they must not keep for the next one.
 */
import { readTextFile } from "../ffi/files.ts";

const forgetting: (() => void)[] = [];

export function forgetAfterCall(forget: () => void): void {
  forgetting.push(forget);
}

/** Modules forget what they held for the call. For processes that run more than one. */
export function endCall(): void {
  caller = leftBecause = undefined;
  wasGone = false;
  for (const forget of forgetting) forget();
}

/** The process that handed its call over. */
interface Caller {
  /** See `processId`; undefined when it cannot be read any more. */
  id(): string | undefined;
  isGone(): boolean;
}

let caller: Caller | undefined;
let leftBecause: string | undefined;
let wasGone = false;

export function takeCall(from: Caller): void {
  caller = from;
}

/** The caller's process is to run the call from its beginning. Make it with `leaveToCaller`. */
export class LeftToCaller extends Error {}

/** Holds even where the error is taken for a failure of one step: then the answer is not sent. */
export function leaveToCaller(reason: string): never {
  leftBecause ??= reason;
  throw new LeftToCaller(reason);
}

/** Whether the call is left to its caller, whatever the error was made into. */
export function isLeft(error: unknown): boolean {
  return error instanceof LeftToCaller || leftBecause !== undefined;
}

/** Why the call is left to its caller, whatever it returned. */
export function reasonLeft(): string | undefined {
  return leftBecause;
}

/** The longest that a worker waits for an answer of somebody else's program. */
export const BRIEF_WAIT_MS = 10;

/**
 * Call this before a wait of up to `patienceMs` for somebody else's program. An ADD that may wait is declined before it
 * begins. The other verbs may meet what an ADD with another configuration has made; what they have done by then is not
 * undone, because they can be repeated, as after a kill. A call whose caller is gone is left to nobody: what it takes back
 * is waited for.
 */
export function leaveBeforeWaiting(awaited: string, patienceMs = Infinity): void {
  if (isHandedOver() && patienceMs > BRIEF_WAIT_MS && !isCallerGone()) leaveToCaller(awaited);
}

export function isHandedOver(): boolean {
  return caller !== undefined;
}

/** Nobody waits for the answer any more. */
export function isCallerGone(): boolean {
  wasGone ||= caller !== undefined && caller.isGone();
  return wasGone;
}

/** Of the caller that handed its call over; undefined when the call is this process's own. */
export function callerId(): string | undefined {
  return caller?.id();
}

/** What `callerId` is, or was, in a resident that this very call was handed over to. */
export function ownProcessId(): string {
  return processId(readTextFile("/proc/self/stat") ?? "");
}

/**
 * Differs from the one of every other process until the next boot, also from a later one with the same number. `stat` is
 * the process's file of this name.
 */
export function processId(stat: string): string {
  // The name before may contain anything. The 20th field after it is the time of the start (proc(5)).
  const startedAt = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return `${stat.slice(0, stat.indexOf(" "))} ${startedAt}`;
}
