/** Whether calls leave a resident behind where none is there: `install --resident=left` puts a file beside the program. */
import { exists } from "../ffi/files.ts";

export const PERMISSION = ".patchbay-resident";

export function mayLeaveResident(): boolean {
  const program = process.execPath;
  return exists(`${program.slice(0, program.lastIndexOf("/"))}/${PERMISSION}`);
}
