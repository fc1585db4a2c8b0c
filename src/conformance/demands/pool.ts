/** Whether addresses come back: from a pool with a single address, the next container gets it, or none. */
import type { Change, Trial, TrialAttachment } from "../trial.ts";
import { UnmetDemand } from "../unmet-demand.ts";

export function requireAddressBack(trial: Trial, remove: (one: TrialAttachment, change: Change) => void): void {
  const conf = trial.subject.confOfOneAddress!, one = trial.attachment("c1");
  one.add({ conf });
  remove(one, { conf });
  try {
    trial.attachment("c2").add({ conf });
  } catch (error) {
    throw error instanceof UnmetDemand
      ? new UnmetDemand(`the only address is not free afterwards: ${error.message}`)
      : error;
  }
}

export function whyNoPool({ subject }: Trial): string | undefined {
  return subject.confOfOneAddress === undefined ? "it has no pool of addresses" : undefined;
}

/** For demands that need two containers at a time, or that are asked after a namespace is gone. */
export function whyNoSecondContainer(trial: Trial): string | undefined {
  return trial.subject.attachesOnce ? "only one container at a time can have its link" : whyNoPool(trial);
}
