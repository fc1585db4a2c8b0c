/**
 * How long one verb of a plugin waits for a program of somebody else's: altogether, however often it asks. Whoever answers
 * each question just before its limit would otherwise keep the verb for as long as there are questions. What passes between
 * the questions does not count.
 */
import { forgetAfterCall } from "./calls.ts";

let waitedMs = new Map<string, number>();
forgetAfterCall(() => waitedMs.clear());

/** What is left of `limitMs` for `whom`, in whole milliseconds. With 0 nobody is to be asked any more: there it means for ever. */
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

/** For each verb, and for each attachment that a command works on. What another verb within it waits is its own. */
export function withOwnPatience<T>(work: () => T): T {
  const outer = waitedMs;
  waitedMs = new Map();
  try {
    return work();
  } finally {
    waitedMs = outer;
  }
}
