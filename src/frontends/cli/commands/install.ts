/**
 * `patchbay install DIR`: one copy of this program in a CNI plugin directory, and a symbolic link to it for every
 * plugin name. At every moment each name leads to a plugin. Files that had one of the names before are kept. Where all of
 * it is there already, nothing is written.
 *
 * Longer than 300 lines: what is installed and what is uninstalled are the same files.
 */
import { NOT_IN_EVERY_RELEASE } from "../../../cni/about.ts";
import { errorText } from "../../../cni/error.ts";
import { attemptAll } from "../../../contract/failures.ts";
import { hasFileCapabilities, haveSameBytes, linkTarget, replaceWithCopy } from "../../../ffi/directory-entries.ts";
import { EROFS, isErrno } from "../../../ffi/errno.ts";
import {
  exists,
  type FileIdentity,
  identify,
  isRegularFile,
  listDirectory,
  removeFile,
  syncDirectory,
} from "../../../ffi/files.ts";
import { whileDirectoryLockedIfPossible } from "../../../process/lock.ts";
import { libc } from "../../../ffi/libc.ts";
import { pluginNames } from "../../../plugins/table.ts";
import { type Command, type GivenArguments, type OptionTable, UsageError } from "../command.ts";
import {
  BACKUP,
  hasBackup,
  identifyEntry,
  judgePlaces,
  linkWithBackup,
  removeBackups,
  removeLeftovers,
  unlinkAndRestore,
} from "../../../install/link-with-backup.ts";
import { absolutePath } from "../../../ffi/absolute-path.ts";
import { printableWord } from "../../../ffi/terminal.ts";
import { VERSION } from "../../../process/version.ts";
import { printLine, printToStderr } from "../../../process/output.ts";
import {
  DRIVER,
  linkPrograms,
  NETAVARK,
  NETAVARK_DIRECTORY,
  PODMAN_DIRECTORY,
  PROGRAM,
  PROGRAM_NAMES,
  RECORD,
  recordedDirectories,
  unlinkPrograms,
} from "../../../install/program-links.ts";
import type { ServiceRow } from "../../../services/service.ts";
import { services } from "../../../services/table.ts";
import { checkUninstall, UninstallRefused } from "../../../install/uninstall-check.ts";
import { installService, removeService, tellWhatStaysElsewhere, type Way, WAYS } from "../../../install/services.ts";
import { judgeUnits } from "../../../install/units.ts";

/** Packages ask before they are removed, and tell this from a program that does not run. */
export const REFUSED = 3;
/** What is made in the directory under another name first. */
const TEMPORARIES = [PROGRAM, RECORD, ...pluginNames];

const linkOptions: OptionTable = {
  bin: { value: "DIR", help: "also link patchbay and cnitool into DIR, for the command line" },
  podman: {
    value: "DIR",
    otherwise: PODMAN_DIRECTORY,
    help: `also link patchbay into DIR (${PODMAN_DIRECTORY}), as a driver of podman's networks`,
  },
  netavark: {
    value: "DIR",
    otherwise: NETAVARK_DIRECTORY,
    help: `also link netavark into DIR (${NETAVARK_DIRECTORY}), for helper_binaries_dir of podman`,
  },
};

const optionsWithUninstall: OptionTable = {
  force: { help: "with --uninstall: even when something is attached that only this program can remove" },
  replaced: { help: "with --uninstall: Go's plugins take this place, so only what they cannot remove counts" },
  "dry-run": { help: "with --uninstall: only say what would stay attached, and whether it would be refused" },
};

export const installCommand: Command = {
  runsByItself: true,
  printsAfterwards: true,
  summary: "install this program in a CNI plugin directory under every plugin name",
  operands: "DIR",
  operandCount: [1, 1],
  options: {
    ...linkOptions,
    ...serviceOptions(services),
    uninstall: { help: "remove the plugins and put back what they replaced" },
    ...optionsWithUninstall,
  },
  notes:
    `A file that has one of the names is kept in ${BACKUP} of its directory, and put back by --uninstall. Of two that\n` +
    "had the same name, one after the other, the later one is kept.\n",
  exitStatus: `With --dry-run, ${REFUSED} when --uninstall would be refused.`,
  examples: [
    { args: "--bin /usr/local/bin /opt/cni/bin", what: "where most engines look for plugins" },
    { args: "--uninstall /opt/cni/bin", what: "put back what was there before" },
  ],
  run(given: GivenArguments) {
    const directory = absolutePath(given.operands[0]!), links = linksIn(given);
    for (const path of [directory, ...links.map(({ bin }) => bin)]) refuseControlCharacters(path);
    for (const { option, bin } of links) requireOtherDirectory(option, bin, directory);
    for (const service of services) refuseOtherWays(service, given);
    for (const { option } of services) refuseTogether(given, [option, `no-${option}`, "uninstall"]);
    refuseWithoutUninstall(given, Object.keys(optionsWithUninstall));
    if (given.has("dry-run")) return isRefused(directory, given) ? REFUSED : 0;
    if (given.has("uninstall")) uninstallFrom(directory, given);
    else explainReadOnly(directory, () => installInto(directory, links, given));
    return 0;
  },
};

export function serviceOptions(services: readonly ServiceRow[]): OptionTable {
  return Object.fromEntries(services.flatMap(({ option, help, permission }) => [
    [option, { help: help.install, ...permission === undefined ? {} : { value: WAYS.join("|"), otherwise: "auto" } }],
    [`no-${option}`, { help: help.remove }],
  ]));
}

/** Links to the program in other directories. */
interface Links {
  option: string;
  bin: string;
  names: readonly string[];
}

const LINKS = { bin: PROGRAM_NAMES, podman: [DRIVER], netavark: [NETAVARK] };

function linksIn(given: GivenArguments): Links[] {
  return Object.entries(LINKS).flatMap(([option, names]) => {
    const bin = given.value(option);
    return bin === undefined ? [] : [{ option, bin: absolutePath(bin), names }];
  });
}

/** The path is a line of a unit, and of a list. */
function refuseControlCharacters(path: string): void {
  if (printableWord(path) !== path) {
    throw new UsageError(`${JSON.stringify(path)} has control characters: name another directory`);
  }
}

function refuseOtherWays({ option, permission }: ServiceRow, given: GivenArguments): void {
  const way = given.value(option);
  if (permission === undefined || way === undefined || (WAYS as readonly string[]).includes(way)) return;
  throw new UsageError(`--${option} is one of ${WAYS.join(", ")}, not ${JSON.stringify(way)}`);
}

function refuseTogether(given: GivenArguments, options: readonly string[]): void {
  const [first, second] = options.filter((option) => given.has(option));
  if (second !== undefined) throw new UsageError(`--${first} and --${second} exclude each other`);
}

function refuseWithoutUninstall(given: GivenArguments, options: readonly string[]): void {
  const alone = given.has("uninstall") ? undefined : options.find((option) => given.has(option));
  if (alone !== undefined) throw new UsageError(`--${alone} needs --uninstall`);
}

function installInto(directory: string, links: readonly Links[], given: GivenArguments): void {
  judgePlaces(directory, pluginNames);
  for (const { bin, names } of links) judgePlaces(bin, names);
  for (const service of services) {
    if (["auto", "systemd"].includes(wayOf(service, given, false))) judgeUnits(service);
  }
  refuseElevated("/proc/self/exe", identify("/proc/self/exe"));
  libc.umask(0o022); // everybody may read a plugin directory
  const isFirst = whileDirectoryLockedIfPossible(directory, () => {
    const isFirst = install(directory);
    for (const { bin, names } of links) linkPrograms(bin, directory, names);
    return isFirst;
  });
  for (const service of services) {
    installService(service, directory, wayOf(service, given, isFirst));
  }
}

function wayOf({ option, comesUnasked, permission }: ServiceRow, given: GivenArguments, isFirst: boolean): Way {
  if (given.has(`no-${option}`)) return "none";
  if (!given.has(option)) return isFirst && comesUnasked ? "unasked" : "unchanged";
  return permission === undefined ? "systemd" : given.value(option) as Way;
}

/** Returns whether the program was not there before. */
function install(directory: string): boolean {
  const program = `${directory}/${PROGRAM}`;
  const present = identifyEntry(program);
  if (present !== undefined) refuseElevated(program, present);
  removeLeftovers(directory, TEMPORARIES);
  const isNew = present === undefined || !isCopy(program, present);
  if (isNew) {
    replaceWithCopy(program, "/proc/self/exe", 0o755);
    printLine(`${program}: ${present === undefined ? "installed" : "replaced"}`);
  }
  const linked = pluginNames.filter((name) => linkWithBackup(`${directory}/${name}`, PROGRAM));
  // Immutable file systems have no fsync.
  if (isNew || linked.length > 0) syncDirectory(directory);
  return present === undefined;
}

/** Whether a copy would make the same file again. */
function isCopy(program: string, present: FileIdentity): boolean {
  if (present.id === identify("/proc/self/exe").id) return true;
  return isRegularFile(present) && (present.mode & 0o7777) === 0o755 && present.uid === process.geteuid!() &&
    haveSameBytes(program, "/proc/self/exe");
}

/** Where nothing is missing, a directory may be read-only: that of an immutable system, or of a second container. */
function explainReadOnly(directory: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!isErrno(error, EROFS)) throw error;
    throw new Error(
      `${errorText(error)}: ${directory} does not have all of patchbay ${VERSION} as this build has it; mount it ` +
        "writable, install the same build, or name another directory",
    );
  }
}

function uninstallFrom(directory: string, given: GivenArguments): void {
  for (const each of [directory, ...recordedDirectories(directory)]) judgePlaces(each, []);
  const work = () => {
    checkWhatStays(directory, given);
    // A step that fails does not keep the others from removing what they can; all failures are told at the end.
    attemptAll([
      ...services.map((service) => () => removeService(service, directory)),
      () => removeLeftovers(directory, TEMPORARIES),
      () => unlinkPrograms(directory),
      () => uninstall(directory),
    ], "\n");
  };
  if (exists(directory)) return whileDirectoryLockedIfPossible(directory, work);
  printToStderr(`patchbay install: there is no ${directory}; nothing is installed there`);
  work();
}

/** Says why on stderr. */
function isRefused(directory: string, given: GivenArguments): boolean {
  try {
    checkWhatStays(directory, given);
    return false;
  } catch (error) {
    if (!(error instanceof UninstallRefused)) throw error;
    printToStderr(`patchbay install: ${error.message}`);
    return true;
  }
}

/** The plugins that are back after uninstalling must be able to remove what is attached now, unless it is forced. */
function checkWhatStays(directory: string, given: GivenArguments): void {
  const names = listDirectory(directory), own = identify("/proc/self/exe").id;
  // Links of a package lead out of the directory.
  const isOurs = (name: string) => {
    const path = `${directory}/${name}`;
    return linkTarget(path) === PROGRAM || (exists(path) && identify(path).id === own);
  };
  const willExist = (name: string) => {
    if (given.has("replaced")) return !NOT_IN_EVERY_RELEASE.includes(name);
    return isOurs(name) || !names.includes(name) ? hasBackup(`${directory}/${name}`) : true;
  };
  if (!given.has("dry-run") && !names.some(isOurs)) return;
  checkUninstall(willExist, given.has("force"));
  tellWhatStaysElsewhere(services);
}

/** Goes by the links that are there, not by our list of names: an older version may have installed others. */
function uninstall(directory: string): void {
  for (const name of listDirectory(directory)) {
    if (name !== PROGRAM) unlinkAndRestore(`${directory}/${name}`, PROGRAM);
  }
  removeBackups(directory);
  const program = `${directory}/${PROGRAM}`;
  if (removeFile(program)) printLine(`${program}: removed`);
}

/** The runtime obeys the caller's environment, so a privileged copy would give every user its privileges. */
function refuseElevated(path: string, file: FileIdentity): void {
  const shown = path === "/proc/self/exe" ? "this program" : path;
  if ((file.mode & 0o6000) !== 0) throw new Error(`${shown} is setuid or setgid; it must be neither`);
  if (hasFileCapabilities(path)) throw new Error(`${shown} has file capabilities; remove them with setcap -r`);
}

function requireOtherDirectory(option: string, bin: string, directory: string): void {
  if (bin === directory) {
    throw new UsageError(`--${option} ${bin} is the plugin directory, where the program itself is`);
  }
}
