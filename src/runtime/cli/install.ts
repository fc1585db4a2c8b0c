/**
 * `patchbay install DIR`: one copy of this program in a CNI plugin directory, and a symbolic link to it for every
 * plugin name. No name is ever without a plugin on the way, and a file that was there before is kept.
 */
import {
  hasFileCapabilities,
  linkTarget,
  rename,
  replaceWithCopy,
  replaceWithHardLink,
  replaceWithLink,
} from "../../ffi/directory-entries.ts";
import { ENOENT, isErrno } from "../../ffi/errno.ts";
import {
  type FileIdentity,
  identify,
  isDirectory,
  listDirectory,
  makeDirectories,
  removeFile,
  syncDirectory,
} from "../../ffi/files.ts";
import { libc } from "../../ffi/libc.ts";
import { pluginNames } from "../../plugins/table.ts";
import type { Command, Given } from "./command.ts";
import { printLine } from "./print.ts";
import { linkPrograms, requireAnother, unlinkPrograms } from "./program-links.ts";
import { tellWhatStays } from "./what-stays.ts";

const PROGRAM = "patchbay";
const BACKUP = ".patchbay-backup";

export const installCommand: Command = {
  summary: "put every plugin name into a CNI plugin directory",
  operands: "DIR",
  operandCount: [1, 1],
  options: {
    bin: { value: "DIR", help: "also make links named patchbay and cnitool in DIR, for the command line" },
    uninstall: { help: "take them out again and put back what they replaced" },
    force: { help: "with --uninstall: also while something is attached that only this program removes" },
  },
  notes: `What was there under one of the names is kept as NAME${BACKUP}, and put back by --uninstall.\n`,
  run(given: Given) {
    const directory = given.operands[0]!;
    const bin = given.value("bin");
    if (bin !== undefined) requireAnother(bin, directory);
    if (given.has("uninstall")) {
      refuseToStrand(directory, given.has("force"));
      unlinkPrograms(directory);
      uninstall(directory);
    } else {
      install(directory);
      if (bin !== undefined) linkPrograms(bin, directory);
    }
    return 0;
  },
};

function install(directory: string): void {
  const own = identify("/proc/self/exe");
  refuseElevated("/proc/self/exe", own);
  libc.umask(0o022); // plugin directories are read by everybody
  makeDirectories(directory, 0o755);
  const program = `${directory}/${PROGRAM}`;
  const present = identifyEntry(program);
  if (present !== undefined) refuseElevated(program, present);
  if (present?.id !== own.id) {
    replaceWithCopy(program, "/proc/self/exe", 0o755);
    printLine(`${program}: ${present === undefined ? "installed" : "replaced"}`);
  }
  for (const name of pluginNames) installName(directory, name);
  syncDirectory(directory);
}

function installName(directory: string, name: string): void {
  const path = `${directory}/${name}`;
  if (linkTarget(path) === PROGRAM) return;
  const present = identifyEntry(path);
  if (present !== undefined) {
    if (isDirectory(present)) throw new Error(`${path} is a directory`);
    replaceWithHardLink(path + BACKUP, path);
  }
  replaceWithLink(path, PROGRAM);
  printLine(`${path}: installed${present === undefined ? "" : `; what was there is now ${name}${BACKUP}`}`);
}

/** What is attached now must find a plugin that removes it, unless `force`. */
function refuseToStrand(directory: string, force: boolean): void {
  const names = listDirectory(directory);
  const isOurs = (name: string) => linkTarget(`${directory}/${name}`) === PROGRAM;
  if (names.some(isOurs)) tellWhatStays((name) => names.includes(isOurs(name) ? name + BACKUP : name), force);
}

/** Looks at what is there, not at our list of names: an older version may have installed others. */
function uninstall(directory: string): void {
  const names = listDirectory(directory);
  for (const name of names) {
    const path = `${directory}/${name}`;
    if (name === PROGRAM || linkTarget(path) !== PROGRAM) continue;
    if (names.includes(name + BACKUP)) {
      rename(path + BACKUP, path);
      printLine(`${path}: put back what was there before`);
    } else {
      removeFile(path);
      printLine(`${path}: removed`);
    }
  }
  const program = `${directory}/${PROGRAM}`;
  if (removeFile(program)) printLine(`${program}: removed`);
}

/** With privileges of its own this program would be a way to them for every user: its runtime obeys the environment. */
function refuseElevated(path: string, file: FileIdentity): void {
  const shown = path === "/proc/self/exe" ? "this program" : path;
  if ((file.mode & 0o6000) !== 0) throw new Error(`${shown} is setuid or setgid; it must be neither`);
  if (hasFileCapabilities(path)) throw new Error(`${shown} has file capabilities; remove them with setcap -r`);
}

function identifyEntry(path: string): FileIdentity | undefined {
  try {
    return identify(path, false);
  } catch (error) {
    if (isErrno(error, ENOENT)) return undefined;
    throw error;
  }
}
