/** What comes of work, for a test to say what it is. */
import { CniError } from "../../src/cni/error.ts";

/** What it answers, or what it throws. */
export function outcomeOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

/** What the CniError that it throws has: details only where there are some. */
export function refusal(work: () => unknown): [code: number, message: string, details?: string] {
  const error = outcomeOf(work);
  if (!(error instanceof CniError)) throw new Error("was not refused", { cause: error });
  const { code, message, details } = error;
  return details === "" ? [code, message] : [code, message, details];
}
