/** Warnings for the operator. Engines show a plugin's stderr or log it; stdout belongs to the result. */
import { forgetAfterCall } from "./calls.ts";
import { printToStderr } from "../ffi/terminal.ts";

let reportedLater = "";

/** Runs `work` and drops warnings that end in `reason`: an error thrown afterwards reports the same. */
export function withoutRepeating<Value>(reason: string, work: () => Value): Value {
  const before = reportedLater;
  reportedLater = reason;
  try {
    return work();
  } finally {
    reportedLater = before;
  }
}

let listener: ((message: string) => void) | undefined;

/** A library hands the warnings of a call to its program instead. */
export function whileWarning<Value>(listen: (message: string) => void, work: () => Value): Value {
  listener = listen;
  try {
    return work();
  } finally {
    listener = undefined;
  }
}

const said = new Set<string>();
forgetAfterCall(() => said.clear());

/** For what one call meets several times. */
export function warnOnce(message: string): void {
  if (said.has(message)) return;
  said.add(message);
  warn(message);
}

export function warn(message: string): void {
  if (reportedLater !== "" && message.endsWith(reportedLater)) return;
  if (listener !== undefined) return listener(message);
  printToStderr(`patchbay: ${message}`);
}
