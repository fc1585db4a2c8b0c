/**
 * How long one verb of a plugin waits for a program of somebody else's: altogether, however often it asks. A program
 * that answers each question just before its limit would otherwise keep the verb for as long as there are questions. The
 * time between the questions does not count.
 */
import { forgetAfterCall, isCallerGone, isHandedOver, leaveToCaller } from "./calls.ts";

let waitedMs = new Map<string, number>();
forgetAfterCall(() => waitedMs.clear());

/** What is left of `limitMs` for `whom`, in whole milliseconds. When it is 0, nobody is asked: as a limit, 0 would mean none. */
export function patienceLeftMs(whom: string, limitMs: number): number {
  return Math.max(0, Math.ceil(limitMs - (waitedMs.get(whom) ?? 0)));
}

/** The time that `work` takes is a wait for `whom`. */
export function waitingFor<T>(whom: string, work: () => T): T {
  const begun = performance.now();
  try {
    return work();
  } finally {
    waitedMs.set(whom, (waitedMs.get(whom) ?? 0) + performance.now() - begun);
  }
}

/** `whom` is waited for as if nobody had waited yet: for what takes back. */
export function renewPatience(whom: string): void {
  waitedMs.delete(whom);
}

/** Counts anew, for one verb or one attachment that a command works on. A verb within it counts for itself. */
export function withOwnPatience<T>(work: () => T): T {
  const outer = waitedMs;
  waitedMs = new Map();
  try {
    return work();
  } finally {
    waitedMs = outer;
  }
}

/** How long a worker of a resident waits for an answer of somebody else's program, unless said otherwise. */
export const BRIEF_WAIT_MS = 10;

/** Other calls would wait for a worker that waits: it asks, and goes on only when the answer comes at once. */
export function patienceHereMs(limitMs: number, briefMs = BRIEF_WAIT_MS): number {
  return isHandedOver() ? Math.min(limitMs, briefMs) : limitMs;
}

/**
 * Before a wait of up to `limitMs` for somebody else's program: a worker leaves the call to its caller. An ADD that may wait
 * is declined before it begins; the other verbs may meet what an ADD with another configuration has made. A call whose
 * caller is gone is left to nobody: what it takes back is waited for.
 */
export function beforeWaitingFor(whom: string, limitMs = Infinity): void {
  if (isHandedOver() && limitMs > BRIEF_WAIT_MS && !isCallerGone()) leaveToCaller(whom);
}
