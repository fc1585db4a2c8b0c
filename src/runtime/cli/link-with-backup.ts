/** Symbolic links in the place of files, which are kept beside them and put back later. */
import { linkTarget, rename, replaceWithHardLink, replaceWithLink } from "../../ffi/directory-entries.ts";
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import { type FileIdentity, identify, isDirectory, removeFile } from "../../ffi/files.ts";
import { printLine } from "./output.ts";

export const BACKUP = ".patchbay-backup";

/** Does nothing when the link exists. The path always leads to the old file or to the target. */
export function linkWithBackup(path: string, target: string): void {
  if (linkTarget(path) === target) return;
  const replaced = identifyEntry(path);
  if (replaced !== undefined) {
    if (isDirectory(replaced)) throw new Error(`${path} is a directory`);
    replaceWithHardLink(path + BACKUP, path);
  }
  replaceWithLink(path, target);
  const backup = `${path.slice(path.lastIndexOf("/") + 1)}${BACKUP}`;
  printLine(`${path}: installed${replaced === undefined ? "" : `; what was there is now ${backup}`}`);
}

/** Does nothing when something else is there by now. */
export function unlinkAndRestore(path: string, target: string): void {
  if (linkTarget(path) !== target) return;
  const hasBackup = identifyEntry(path + BACKUP) !== undefined;
  if (hasBackup) rename(path + BACKUP, path);
  else removeFile(path);
  printLine(`${path}: ${hasBackup ? "put back what was there before" : "removed"}`);
}

/** Undefined when there is nothing. Links are not followed. */
export function identifyEntry(path: string): FileIdentity | undefined {
  try {
    return identify(path, false);
  } catch (error) {
    if (isErrno(error, ENOENT)) return undefined;
    throw error;
  }
}
