/**
 * `install --bin DIR`: links to the runtime where a shell finds them. A file in the plugin directory lists the
 * directories with such links, for `--uninstall`.
 */
import { linkTarget, rename, replaceWithHardLink, replaceWithLink } from "../../ffi/directory-entries.ts";
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import { identify, isDirectory, makeDirectories, readTextFile, removeFile, replaceFile } from "../../ffi/files.ts";
import { UsageError } from "./command.ts";
import { absolutePath } from "./network-arguments.ts";
import { printLine } from "./output.ts";

const NAMES = ["patchbay", "cnitool"];
const RECORD = ".patchbay-bin";
const BACKUP = ".patchbay-backup";

export function requireOtherDirectory(bin: string, directory: string): void {
  if (absolutePath(bin) === absolutePath(directory)) {
    throw new UsageError(`--bin ${bin} is the plugin directory, which must not contain ${NAMES[1]}`);
  }
}

export function linkPrograms(bin: string, directory: string): void {
  const record = `${directory}/${RECORD}`, own = absolutePath(bin);
  makeDirectories(own, 0o755);
  const known = readTextFile(record)?.split("\n").filter(Boolean) ?? [];
  // Written first: --uninstall does not find links that are not listed.
  if (!known.includes(own)) replaceFile(record, [...known, own, ""].join("\n"));
  for (const name of NAMES) linkProgram(`${own}/${name}`, programIn(directory));
}

function linkProgram(path: string, program: string): void {
  if (linkTarget(path) === program) return;
  const isThere = exists(path);
  if (isThere) replaceWithHardLink(path + BACKUP, path);
  replaceWithLink(path, program);
  printLine(
    `${path}: installed${isThere ? `; what was there is now ${path.slice(path.lastIndexOf("/") + 1)}${BACKUP}` : ""}`,
  );
}

export function unlinkPrograms(directory: string): void {
  const record = `${directory}/${RECORD}`;
  for (const bin of readTextFile(record)?.split("\n").filter(Boolean) ?? []) {
    for (const name of NAMES) {
      const path = `${bin}/${name}`;
      if (linkTarget(path) !== programIn(directory)) continue;
      const hasBackup = exists(path + BACKUP);
      if (hasBackup) rename(path + BACKUP, path);
      else removeFile(path);
      printLine(`${path}: ${hasBackup ? "put back what was there before" : "removed"}`);
    }
  }
  removeFile(record);
}

function programIn(directory: string): string {
  return `${absolutePath(directory)}/patchbay`;
}

function exists(path: string): boolean {
  try {
    if (isDirectory(identify(path, false))) throw new Error(`${path} is a directory`);
    return true;
  } catch (error) {
    if (isErrno(error, ENOENT)) return false;
    throw error;
  }
}
