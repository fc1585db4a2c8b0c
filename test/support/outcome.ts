/** What comes of work, for a test to say what it is. */
import { CniError, errorText } from "../../src/cni/error.ts";

/** What it answers, or what it throws. */
export function outcomeOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

/** Undefined when it throws nothing. */
export function thrown(work: () => unknown): unknown {
  return outcomeOf(() => void work());
}

/** Empty when it throws nothing. */
export function textThrown(work: () => unknown): string {
  const error = thrown(work);
  return error === undefined ? "" : errorText(error);
}

/** What the CniError that it throws has: details only where there are some. */
export function refusal(work: () => unknown): [code: number, message: string, details?: string] {
  const error = thrown(work);
  if (!(error instanceof CniError)) throw new Error("was not refused", { cause: error });
  const { code, message, details } = error;
  return details === "" ? [code, message] : [code, message, details];
}
