/**
 * `install --bin DIR`: links to the runtime where a shell finds them. A file in the plugin directory lists the
 * directories with such links, for `--uninstall`.
 */
import { makeDirectories, readTextFile, removeFile, replaceFile } from "../../ffi/files.ts";
import { UsageError } from "./command.ts";
import { linkWithBackup, unlinkAndRestore } from "./link-with-backup.ts";
import { absolutePath } from "./network-arguments.ts";

const NAMES = ["patchbay", "cnitool"];
const RECORD = ".patchbay-bin";

export function requireOtherDirectory(bin: string, directory: string): void {
  if (absolutePath(bin) === absolutePath(directory)) {
    throw new UsageError(`--bin ${bin} is the plugin directory, which must not contain ${NAMES[1]}`);
  }
}

export function linkPrograms(bin: string, directory: string): void {
  const own = absolutePath(bin), recorded = recordedDirectories(directory);
  makeDirectories(own, 0o755);
  // Written first: --uninstall does not find links that are not listed.
  if (!recorded.includes(own)) replaceFile(`${directory}/${RECORD}`, [...recorded, own, ""].join("\n"));
  for (const name of NAMES) linkWithBackup(`${own}/${name}`, programIn(directory));
}

export function unlinkPrograms(directory: string): void {
  for (const bin of recordedDirectories(directory)) {
    for (const name of NAMES) unlinkAndRestore(`${bin}/${name}`, programIn(directory));
  }
  removeFile(`${directory}/${RECORD}`);
}

function recordedDirectories(directory: string): string[] {
  return readTextFile(`${directory}/${RECORD}`)?.split("\n").filter(Boolean) ?? [];
}

function programIn(directory: string): string {
  return `${absolutePath(directory)}/patchbay`;
}
