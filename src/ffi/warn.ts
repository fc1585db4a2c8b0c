/** Notes for the operator. Engines show a plugin's stderr or write it to their log; stdout belongs to the result. */
import { writeAll } from "./files.ts";
import { utf8 } from "./libc.ts";

let toBeTold = "";

/** Runs `work` without the warnings that end in `reason`: an error that is thrown afterwards tells it. */
export function withoutRepeating<Value>(reason: string, work: () => Value): Value {
  const before = toBeTold;
  toBeTold = reason;
  try {
    return work();
  } finally {
    toBeTold = before;
  }
}

export function warn(message: string): void {
  if (toBeTold !== "" && message.endsWith(toBeTold)) return;
  try {
    writeAll(2, utf8(`patchbay: ${message}\n`));
  } catch {
    // A closed stderr must not stop the clean-up it was to report on.
  }
}
