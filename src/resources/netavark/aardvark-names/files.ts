/** The files of aardvark-dns and their lock. Whoever changes them, or starts or signals the program, holds the lock. */
import { EDQUOT, ENOSPC, isErrno } from "../../../ffi/errno.ts";
import { exists, listDirectory, makeDirectories, removeFile, replaceFile } from "../../../ffi/files.ts";
import { rename } from "../../../ffi/directory-entries.ts";
import { openStateLock, overwriteStateFile, readStateFile, whileStateLocked } from "../../../ffi/state-file.ts";
import { within } from "../shared/failure.ts";

/** aardvark-dns writes its process id there. */
export const PID_FILE = "aardvark.pid";
/** At the end of the name of an internal network's file. aardvark-dns asks nobody else for those. */
const INTERNAL = "%int";
const FILE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;

/** The lock is netavark's own, so that both can write by turns. */
export function whileAlone<Value>(directory: string, work: () => Value): Value {
  const path = `${parentOf(directory)}/aardvark.lock`;
  const open = () => within(`Failed to open/create lockfile ${path}`, () => openStateLock(path));
  return whileStateLocked(path, () => {
    removeFile(temporaryOf(directory)); // Of a process that was killed.
    return work();
  }, open);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** Not in the directory itself, all files of which are read. */
function temporaryOf(directory: string): string {
  return `${parentOf(directory)}/aardvark.new`;
}

export function makeDirectory(directory: string): void {
  within(`failed to create aardvark-dns directory ${directory}`, () => makeDirectories(directory));
}

/** Whether the name can be one of a file here. */
export function refuseBadName(network: string): void {
  if (FILE_NAME.test(network) && network !== PID_FILE) return;
  throw new Error(`network name ${JSON.stringify(network)} cannot be the name of a file for aardvark-dns`);
}

/** The path of the network's file, which had the other name when the network was not internal, or was. */
export function placeFile(directory: string, network: string, isInternal: boolean): string {
  const paths = [`${directory}/${network}`, `${directory}/${network}${INTERNAL}`];
  const [path, other] = isInternal ? paths.toReversed() : paths;
  if (exists(other!) && !exists(path!)) rename(other!, path!);
  return path!;
}

/** The files of the network that are there. */
export function filesOf(directory: string, network: string): string[] {
  return [`${directory}/${network}`, `${directory}/${network}${INTERNAL}`].filter(exists);
}

export function hasFiles(directory: string): boolean {
  return listDirectory(directory).some((name) => name !== PID_FILE);
}

export function readFile(path: string): string {
  return readStateFile(path) ?? "";
}

/** Removes the file instead of making it empty. */
export function writeFile(path: string, text: string): void {
  if (text === "") removeFile(path);
  else replaceFile(path, text, { mode: 0o644, temporary: temporaryOf(parentOf(path)) });
}

/** Also on a full disk, where the text is shorter than it was. */
export function shortenFile(path: string, text: string): void {
  try {
    writeFile(path, text);
  } catch (error) {
    if (!isErrno(error, ENOSPC, EDQUOT)) throw error;
    overwriteStateFile(path, text);
  }
}
