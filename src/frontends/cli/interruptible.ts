/** Work that takes back what it has begun when SIGINT or SIGTERM comes. src/native/entry.c knows its commands' names. */
import { interruptedBy, signalName, takeInterruptions } from "../../process/interruption.ts";
import { notTakenBack } from "../../contract/failures.ts";
import { printToStderr } from "../../process/output.ts";

/** Returns the exit status of the work, or that of a program which the signal has ended. */
export function interruptible(command: string, work: () => number): number {
  takeInterruptions();
  try {
    return work();
  } catch (error) {
    const signal = interruptedBy();
    if (signal === undefined) throw error;
    const failed = notTakenBack(error), outcome = failed.length === 0 ? ["what it had made is taken back"] : failed;
    printToStderr(`${command}: interrupted by ${signalName(signal)}; ${outcome.join("\n")}`);
    return 128 + signal;
  }
}
