/** Collecting failures: every step is tried even when an earlier one fails, and all failures are reported together. */
import { CniError, errorText, INTERNAL, nextStepOf } from "../cni/error.ts";
import { passOnIfLeft } from "../process/calls.ts";

/** STATUS fails because an earlier ADD did. The next one may succeed, so it is no reason why ADD would fail. */
export class EarlierFailure extends CniError {}

/** CHECK found these. Its text joins them, as engines get it. */
export class Differences extends CniError {
  constructor(readonly lines: readonly string[]) {
    super(INTERNAL, lines.join("; "));
  }
}

/** Runs every step, then throws the failures. */
export function attemptAll(steps: Iterable<() => void>, separator?: string): void {
  throwJoined(collectFailures(steps, (step) => step()), separator);
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
    passOnIfLeft(error);
    failures.push(error);
  }
}

class IncompletelyTakenBack extends CniError {
  constructor({ code, message, cause, nextStep }: CniError, details: string, readonly lines: readonly string[]) {
    super(code, message, details, { cause, nextStep });
  }
}

/** What failed when the work of the error was taken back, if anything did: lines of `followedBy`. */
export function notTakenBack(error: unknown): readonly string[] {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof IncompletelyTakenBack) return at.lines;
  }
  return [];
}

export function takingBackFailed(failures: readonly unknown[]): string[] {
  return failures.map((failure) => `taking it back failed: ${errorText(failure)}`);
}

/** The error, and behind it lines about what failed when its work was taken back: the cause comes first. */
export function followedBy(error: unknown, lines: readonly string[]): unknown {
  if (lines.length === 0) return error;
  const known = error instanceof CniError ? error : new CniError(INTERNAL, errorText(error), "", { cause: error });
  const below = [...new Set(lines)], all = [...notTakenBack(error), ...below];
  return new IncompletelyTakenBack(known, [known.details, ...below].filter(Boolean).join("\n"), all);
}

/**
 * Throws if there are failures: a single one unchanged, several as one error that joins their texts and has the code of
 * the first CniError among them.
 */
export function throwJoined(failures: readonly unknown[], separator = "; "): void {
  if (failures.length === 0) return;
  if (failures.length === 1) throw failures[0];
  const text = failures.map(errorText).join(separator);
  const coded = failures.find((failure) => failure instanceof CniError);
  if (coded === undefined) throw new AggregateError(failures, text);
  const nextStep = failures.map(nextStepOf).find((step) => step !== undefined);
  throw new CniError(coded.code, text, "", { cause: failures[0], nextStep });
}
