/**
 * How a service comes to run: systemd starts it, or calls leave it behind. These do where a file beside the program permits
 * it, which goes wherever the program goes.
 */
import { exists, removeFile, replaceFile } from "../ffi/files.ts";
import { isSystemdRunning } from "../ffi/systemd.ts";
import { printLine } from "../process/output.ts";
import type { ServiceRow } from "../services/service.ts";
import { installUnits, installUnitsUnasked, removeUnits } from "./units.ts";

/** What a person may ask for, of a service that calls may leave behind. */
export const WAYS: readonly string[] = ["auto", "systemd", "left", "none"];
/** `unasked`: as `auto`, for a first installation. */
export type Way = "auto" | "systemd" | "left" | "none" | "unasked" | "unchanged";

export function installService(service: ServiceRow, directory: string, way: Way): void {
  if (way === "unchanged") return;
  if (way === "none") return removeService(service, directory);
  if (service.permission !== undefined && (way === "left" || way !== "systemd" && !isSystemdRunning())) {
    removeUnits(service, directory);
    return permit(service, directory);
  }
  forbid(service, directory);
  if (way === "unasked") installUnitsUnasked(service, directory);
  else installUnits(service, directory);
}

export function removeService(service: ServiceRow, directory: string): void {
  removeUnits(service, directory);
  forbid(service, directory);
}

function permit({ permission, option }: ServiceRow, directory: string): void {
  const path = `${directory}/${permission}`;
  if (exists(path)) return;
  replaceFile(path, TEXT, { mode: 0o644 });
  printLine(`${path}: installed; a call that runs by itself leaves a resident behind, which serves the next ones`);
  printLine(`\`patchbay install --no-${option} ${directory}\` removes that again`);
}

const TEXT = "Calls leave a resident behind; `patchbay install --no-resident` ends that.\n";

function forbid({ permission }: ServiceRow, directory: string): void {
  const path = `${directory}/${permission}`;
  // On a file system that is read-only, removing what is not there fails, too.
  if (permission !== undefined && exists(path) && removeFile(path)) printLine(`${path}: removed`);
}
