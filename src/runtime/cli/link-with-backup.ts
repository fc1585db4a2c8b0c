/**
 * Symbolic links in the place of files, which are kept and put back later. They are kept in a directory: Nomad executes
 * every file of a plugin directory, and takes it for a plugin of its name.
 */
import { linkTarget, rename, replaceWithHardLink, replaceWithLink } from "../../ffi/directory-entries.ts";
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import {
  type FileIdentity,
  identify,
  isDirectory,
  makeDirectories,
  removeEmptyDirectory,
  removeFile,
} from "../../ffi/files.ts";
import { printLine } from "./output.ts";

/** Older builds kept a file beside the link, with this behind its name. */
export const BACKUP = ".patchbay-backup";

/** Does nothing when the link exists. The path always leads to the old file or to the target. */
export function linkWithBackup(path: string, target: string): void {
  moveOlderBackup(path);
  if (linkTarget(path) === target) return;
  const replaced = identifyEntry(path);
  if (replaced !== undefined) {
    if (isDirectory(replaced)) throw new Error(`${path} is a directory`);
    makeDirectories(`${directoryOf(path)}/${BACKUP}`, 0o755);
    replaceWithHardLink(backupOf(path), path);
  }
  replaceWithLink(path, target);
  const where = `; what was there is now ${BACKUP}/${nameOf(path)}`;
  printLine(`${path}: installed${replaced === undefined ? "" : where}`);
}

/** Does nothing when something else is there by now. */
export function unlinkAndRestore(path: string, target: string): void {
  if (linkTarget(path) !== target) return;
  moveOlderBackup(path);
  const isKept = hasBackup(path);
  if (isKept) {
    rename(backupOf(path), path);
    removeEmptyDirectory(`${directoryOf(path)}/${BACKUP}`);
  } else removeFile(path);
  printLine(`${path}: ${isKept ? "put back what was there before" : "removed"}`);
}

export function hasBackup(path: string): boolean {
  return [backupOf(path), path + BACKUP].some((kept) => identifyEntry(kept) !== undefined);
}

function moveOlderBackup(path: string): void {
  const older = path + BACKUP;
  if (identifyEntry(older) === undefined) return;
  makeDirectories(`${directoryOf(path)}/${BACKUP}`, 0o755);
  if (identifyEntry(backupOf(path)) === undefined) rename(older, backupOf(path));
  else removeFile(older);
}

function backupOf(path: string): string {
  return `${directoryOf(path)}/${BACKUP}/${nameOf(path)}`;
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
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
