/**
 * Collecting failures: one step that fails does not keep the others from being tried, and all failures are reported
 * together.
 */
import { CniError, errorText } from "../cni/error.ts";

/** Runs every step, then throws what failed. */
export function attemptAll(steps: Iterable<() => void>): void {
  throwJoined(collectFailures(steps, (step) => step()));
}

/** Runs `work` on every item and returns what it threw. */
export function collectFailures<Item>(items: Iterable<Item>, work: (item: Item) => void): unknown[] {
  const failures: unknown[] = [];
  for (const item of items) attempt(failures, () => work(item));
  return failures;
}

/** Runs `work` and adds what it throws to `failures`. */
export function attempt(failures: unknown[], work: () => void): void {
  try {
    work();
  } catch (error) {
    failures.push(error);
  }
}

/**
 * Throws unless there are no failures: a single failure as it is, several as one error with all their texts. It has the
 * code of the first CniError among them.
 */
export function throwJoined(failures: readonly unknown[], separator = "; "): void {
  if (failures.length === 0) return;
  if (failures.length === 1) throw failures[0];
  const text = failures.map(errorText).join(separator);
  const coded = failures.find((failure) => failure instanceof CniError);
  if (coded === undefined) throw new AggregateError(failures, text);
  throw new CniError(coded.code, text, "", { cause: failures[0] });
}
