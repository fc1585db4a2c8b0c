/** Whether calls start a resident where none is there: `install --resident=calls` puts a file beside the program. */
import { variable } from "../ffi/environment.ts";
import { exists } from "../ffi/files.ts";

export const PERMISSION = ".patchbay-resident";
export const PERMISSION_TEXT = "While this file is beside the program, a call that runs by itself starts a resident.";

/** How long nobody has called when a resident ends that a call, or systemd for a call, has started. */
export const IDLE_SECONDS = 900;

export const SWITCH = "PATCHBAY_RESIDENT", OFF = "off";

export function isSwitchedOff(): boolean {
  return variable(SWITCH) === OFF;
}

export function mayStartResident(program = process.execPath): boolean {
  return exists(`${program.slice(0, program.lastIndexOf("/"))}/${PERMISSION}`);
}
