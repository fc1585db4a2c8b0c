/**
 * Symbolic links in the place of files, which are kept and put back later. They are kept in a directory: Nomad executes
 * every file of a plugin directory, and takes it for a plugin of its name.
 */
import {
  linkTarget,
  removeTemporaries,
  rename,
  replaceWithHardLink,
  replaceWithLink,
} from "../ffi/directory-entries.ts";
import { ENOENT, EROFS, isErrno } from "../ffi/errno.ts";
import {
  exists,
  type FileIdentity,
  identify,
  isDirectory,
  listDirectory,
  makeDirectories,
  removeEmptyDirectory,
  removeFile,
} from "../ffi/files.ts";
import { judgeStateDirectory } from "../process/state-file.ts";
import { printLine } from "../process/output.ts";

export const BACKUP = ".patchbay-backup";

/**
 * Throws when links in the place of `names` could not be made, or what is kept not be put back: before anything is changed.
 * Where others could put files into the directory of what is kept, they would be plugins after --uninstall.
 */
export function judgePlaces(directory: string, names: readonly string[]): void {
  if (exists(directory) && !isDirectory(identify(directory))) throw new Error(`${directory} is not a directory`);
  const backups = `${directory}/${BACKUP}`, kept = identifyEntry(backups);
  judgeStateDirectory(backups);
  if (kept !== undefined && deviceOf(kept) !== deviceOf(identify(directory))) {
    throw new Error(
      `${backups} is on another file system than ${directory}, so no file can be moved into it; unmount it`,
    );
  }
  const places = names.map((name) => `${directory}/${name}`);
  for (const path of [...places, ...listDirectory(backups).map((name) => `${backups}/${name}`)]) {
    const found = identifyEntry(path);
    if (found !== undefined && isDirectory(found)) throw new Error(`${path} is a directory; move it away`);
  }
}

function deviceOf({ id }: FileIdentity): string {
  return id.slice(0, id.indexOf(":"));
}

/** What a process that was killed has left beside these names, and beside those that are kept. */
export function removeLeftovers(directory: string, names: readonly string[]): void {
  try {
    for (const each of [directory, `${directory}/${BACKUP}`]) removeTemporaries(each, names);
  } catch (error) {
    // The step that has to change something in a read-only directory reports it.
    if (!isErrno(error, EROFS)) throw error;
  }
}

/** Does nothing when the link exists, and returns false. The path always leads to the old file or to the target. */
export function linkWithBackup(path: string, target: string): boolean {
  if (linkTarget(path) === target) return false;
  const replaced = identifyEntry(path);
  if (replaced === undefined) {
    replaceWithLink(path, target);
    printLine(`${path}: installed`);
    return true;
  }
  const kept = backupOf(path), before = identifyEntry(kept) === undefined ? "" : ", in place of what was kept before";
  inBackups(path, () => replaceWithHardLink(kept, path));
  replaceWithLink(path, target);
  printLine(`${path}: installed; what was there is now ${BACKUP}/${nameOf(path)}${before}`);
  return true;
}

/** Does nothing when something else is there by now. */
export function unlinkAndRestore(path: string, target: string): void {
  if (linkTarget(path) !== target) return;
  const isKept = hasBackup(path);
  if (isKept) rename(backupOf(path), path);
  else removeFile(path);
  printLine(`${path}: ${isKept ? "put back what was there before" : "removed"}`);
}

/** The last step of uninstalling: what is kept for names that are others' by now stays. */
export function removeBackups(directory: string): void {
  const backups = `${directory}/${BACKUP}`, names = listDirectory(backups);
  if (names.length === 0) removeEmptyDirectory(backups);
  else printLine(`${backups} stays: ${names.join(", ")} ${names.length === 1 ? "was" : "were"} kept in it`);
}

export function hasBackup(path: string): boolean {
  return identifyEntry(backupOf(path)) !== undefined;
}

function inBackups(path: string, work: () => void): void {
  const directory = `${directoryOf(path)}/${BACKUP}`;
  makeDirectories(directory, 0o755);
  judgeStateDirectory(directory);
  try {
    work();
  } catch (error) {
    removeEmptyDirectory(directory);
    throw error;
  }
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
