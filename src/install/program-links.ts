/**
 * `install --bin DIR`, `--podman` and `--netavark`: links to this program where a shell finds the runtime, and podman its
 * drivers of networks and its netavark. A file in the plugin directory lists the directories with such links, for `--uninstall`.
 */
import { makeDirectories, replaceFile } from "../ffi/files.ts";
import { readTrustedState, removeStateFile } from "../process/state-file.ts";
import { linkWithBackup, removeBackups, removeLeftovers, unlinkAndRestore } from "./link-with-backup.ts";
import { absolutePath } from "../ffi/absolute-path.ts";

/** The file in the plugin directory, and what the runtime is called by. */
export const PROGRAM = "patchbay";
/** podman calls a driver by the name of its file. */
export const DRIVER = PROGRAM;
export const PROGRAM_NAMES = [PROGRAM, "cnitool"];
/** podman calls a program of this name for networks. */
export const NETAVARK = "netavark";
/** In the plugin directory. */
export const RECORD = ".patchbay-bin";

/** One of the directories that podman looks in by default. */
export const PODMAN_DIRECTORY = "/usr/local/libexec/netavark";

/** podman does not look here by default: users write this directory in front of the others. */
export const NETAVARK_DIRECTORY = "/opt/podman";

const ALL_NAMES = [...PROGRAM_NAMES, NETAVARK];

export function linkPrograms(bin: string, directory: string, names: readonly string[]): void {
  const own = absolutePath(bin), recorded = recordedDirectories(directory);
  makeDirectories(own, 0o755);
  removeLeftovers(own, names);
  // Written first: --uninstall does not find links that are not listed.
  if (!recorded.includes(own)) replaceFile(`${directory}/${RECORD}`, [...recorded, own, ""].join("\n"));
  for (const name of names) linkWithBackup(`${own}/${name}`, programIn(directory));
}

export function unlinkPrograms(directory: string): void {
  for (const bin of recordedDirectories(directory)) {
    removeLeftovers(bin, ALL_NAMES);
    for (const name of ALL_NAMES) unlinkAndRestore(`${bin}/${name}`, programIn(directory));
    removeBackups(bin);
  }
  removeStateFile(`${directory}/${RECORD}`);
}

/** The directories that have links to the program. */
export function recordedDirectories(directory: string): string[] {
  return readTrustedState(`${directory}/${RECORD}`)?.split("\n").filter(Boolean) ?? [];
}

export function programIn(directory: string): string {
  return `${absolutePath(directory)}/${PROGRAM}`;
}
