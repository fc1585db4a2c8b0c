/** Prints what podman and netavark are answered: one line of JSON on stdout. */
import { errorText } from "../../cni/error.ts";
import { printLine, printToStderr } from "../../process/output.ts";

/** Prints the document that `work` returns; a number is the exit status. Returns the exit status. */
export function printAnswer(work: () => object | number | void): number {
  try {
    const answer = work();
    if (typeof answer === "number") return answer;
    if (answer !== undefined) printLine(JSON.stringify(answer));
    return 0;
  } catch (error) {
    printError(errorText(error));
    return 1;
  }
}

/** podman refuses an error with any other key. */
export function printError(error: string): void {
  try {
    printLine(JSON.stringify({ error }));
  } catch {
    printToStderr(`patchbay: ${error}`);
  }
}
