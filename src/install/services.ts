/**
 * How a service comes to run: systemd starts it, or calls do. These do where a file beside the program permits it, which goes
 * wherever the program goes.
 */
import { exists, removeFile, replaceFile } from "../ffi/files.ts";
import { isSystemdRunning } from "../ffi/systemd.ts";
import { printLine } from "../process/output.ts";
import type { ServiceRow } from "../services/service.ts";
import { installUnits, installUnitsUnasked, removeUnits } from "./units.ts";

/** What a person may ask for, of a service that calls may start. */
export const WAYS = ["auto", "systemd", "calls", "none"] as const;
/** `unasked`: as `auto`, for a first installation. */
export type Way = typeof WAYS[number] | "unasked" | "unchanged";

export function installService(service: ServiceRow, directory: string, way: Way): void {
  if (way === "unchanged") return;
  if (way === "none") return removeService(service, directory);
  if (service.permission !== undefined && isByCalls(way)) {
    removeUnits(service, directory);
    return permit(service, directory);
  }
  if (way === "unasked") installUnitsUnasked(service, directory);
  else installUnits(service, directory);
  if (isSystemdRunning()) forbid(service, directory);
}

function isByCalls(way: Way): boolean {
  return way === "calls" || way !== "systemd" && !isSystemdRunning();
}

export function removeService(service: ServiceRow, directory: string): void {
  removeUnits(service, directory);
  forbid(service, directory);
}

/** For an uninstall, before it. */
export function tellWhatStaysElsewhere(services: readonly ServiceRow[]): void {
  for (const service of services) {
    const line = service.staysElsewhere?.();
    if (line !== undefined) printLine(line);
  }
}

function permit({ permission, option }: ServiceRow, directory: string): void {
  const path = `${directory}/${permission!.file}`;
  if (exists(path)) return;
  replaceFile(path, `${permission!.text}\n`, { mode: 0o644 });
  printLine(`${path}: installed; ${permission!.outlook}`);
  printLine(`\`patchbay install --no-${option} ${directory}\` removes that again`);
}

/** A resident that a call has started ends without it. */
function forbid({ permission }: ServiceRow, directory: string): void {
  if (permission === undefined) return;
  const path = `${directory}/${permission.file}`;
  // On a file system that is read-only, removing what is not there fails, too.
  if (exists(path) && removeFile(path)) printLine(`${path}: removed`);
}
