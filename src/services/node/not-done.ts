/** What a person's command does not do: why, and what to do before it. */
import { CniError, INTERNAL } from "../../cni/error.ts";

export function notDone(why: string, nextStep: string): CniError {
  return new CniError(INTERNAL, why, "", { nextStep });
}
