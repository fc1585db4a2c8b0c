/** Whether systemd manages this host's services (sd_booted(3)). */
import { exists } from "./files.ts";

/** It is there while systemd runs. */
export const SYSTEMD_DIRECTORY = "/run/systemd/system";

export function isSystemdRunning(): boolean {
  return exists(SYSTEMD_DIRECTORY);
}
