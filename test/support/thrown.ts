/** What work throws that has to fail, or may. */
import { errorText } from "../../src/cni/error.ts";

/** Undefined when it throws nothing. */
export function thrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

/** Empty when it throws nothing. */
export function textThrown(work: () => unknown): string {
  const error = thrown(work);
  return error === undefined ? "" : errorText(error);
}
