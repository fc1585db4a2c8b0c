/**
 * `install --bin DIR`: the runtime under its own names where a shell finds it. The plugin directory remembers in which
 * directories it has such links, so that `--uninstall` finds them.
 */
import { linkTarget, rename, replaceWithHardLink, replaceWithLink } from "../../ffi/directory-entries.ts";
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import { identify, isDirectory, makeDirectories, readTextFile, removeFile, replaceFile } from "../../ffi/files.ts";
import { UsageError } from "./command.ts";
import { absolutePath } from "./network-call.ts";
import { printLine } from "./print.ts";

const NAMES = ["patchbay", "cnitool"];
const RECORD = ".patchbay-bin";
const BACKUP = ".patchbay-backup";

/** Refuses before anything is changed. */
export function requireAnother(bin: string, directory: string): void {
  if (absolutePath(bin) === absolutePath(directory)) {
    throw new UsageError(`--bin ${bin} is the plugin directory, which must not have the name ${NAMES[1]}`);
  }
}

export function linkPrograms(bin: string, directory: string): void {
  const record = `${directory}/${RECORD}`, own = absolutePath(bin);
  makeDirectories(own, 0o755);
  const known = readTextFile(record)?.split("\n").filter(Boolean) ?? [];
  // Written first: a link that is not remembered would stay.
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
