/** The files of aardvark-dns and their lock, which is held to change the files, and to start or signal the program. */
import { EDQUOT, ENOSPC, isErrno } from "../../../ffi/errno.ts";
import { exists, listDirectory, removeFile, replaceFile } from "../../../ffi/files.ts";
import { rename } from "../../../ffi/directory-entries.ts";
import { openStateLock, overwriteStateFile, readStateFile, whileStateLocked } from "../../../process/state-file.ts";
import { within } from "../shared/failure.ts";

/** aardvark-dns writes its process id to it. */
export const PID_FILE = "aardvark.pid";
/** The suffix of an internal network's file. For such a network aardvark-dns forwards no queries. */
const INTERNAL = "%int";
const FILE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** Takes netavark's own lock, so that both programs can write in turns. */
export function whileNamesLocked<Value>(directory: string, work: () => Value): Value {
  const path = `${parentOf(directory)}/aardvark.lock`;
  const open = () => within(`Failed to open/create lockfile ${path}`, () => openStateLock(path));
  return whileStateLocked(path, () => {
    removeFile(temporaryOf(directory)); // A killed process may have left it.
    return work();
  }, open);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** It is outside of the directory, because aardvark-dns reads every file in it. */
function temporaryOf(directory: string): string {
  return `${parentOf(directory)}/aardvark.new`;
}

/** Throws for a name that no file in the directory can have. */
export function refuseBadName(network: string): void {
  if (FILE_NAME.test(network) && network !== PID_FILE) return;
  throw new Error(`network name ${JSON.stringify(network)} cannot be the name of a file for aardvark-dns`);
}

/** Returns the path of the network's file. Renames the file when the network has become internal, or is no longer. */
export function placeFile(directory: string, network: string, isInternal: boolean): string {
  const paths = [`${directory}/${network}`, `${directory}/${network}${INTERNAL}`];
  const [path, other] = isInternal ? paths.toReversed() : paths;
  if (exists(other!) && !exists(path!)) rename(other!, path!);
  return path!;
}

/** The existing files of the network. */
export function filesOf(directory: string, network: string): string[] {
  return [`${directory}/${network}`, `${directory}/${network}${INTERNAL}`].filter(exists);
}

export function hasFiles(directory: string): boolean {
  return listDirectory(directory).some((name) => name !== PID_FILE);
}

export function readFile(path: string): string {
  return readStateFile(path) ?? "";
}

/** Removes the file when the text is empty. */
export function writeFile(path: string, text: string): void {
  if (text === "") removeFile(path);
  else replaceFile(path, text, { mode: 0o644, temporary: temporaryOf(parentOf(path)) });
}

/** Works on a full disk, too, because the text is shorter than before. */
export function shortenFile(path: string, text: string): void {
  try {
    writeFile(path, text);
  } catch (error) {
    if (!isErrno(error, ENOSPC, EDQUOT)) throw error;
    overwriteStateFile(path, text);
  }
}
