/** Notes for the operator. Engines show a plugin's stderr or write it to their log; stdout belongs to the result. */
import { writeAll } from "./files.ts";
import { utf8 } from "./libc.ts";

export function warn(message: string): void {
  try {
    writeAll(2, utf8(`patchbay: ${message}\n`));
  } catch {
    // A closed stderr must not stop the clean-up it was to report on.
  }
}
