/**
 * `patchbay install DIR`: one copy of this program in a CNI plugin directory, and a symbolic link to it for every
 * plugin name. At every moment each name leads to a plugin. Files that had one of the names before are kept.
 */
import { hasFileCapabilities, linkTarget, replaceWithCopy } from "../../../ffi/directory-entries.ts";
import {
  exists,
  type FileIdentity,
  identify,
  listDirectory,
  makeDirectories,
  removeFile,
  syncDirectory,
} from "../../../ffi/files.ts";
import { libc } from "../../../ffi/libc.ts";
import { pluginNames } from "../../../plugins/table.ts";
import { type Command, type Given, UsageError } from "../command.ts";
import {
  BACKUP,
  hasBackup,
  identifyEntry,
  judgePlaces,
  linkWithBackup,
  removeBackups,
  unlinkAndRestore,
} from "../link-with-backup.ts";
import { absolutePath } from "../../../ffi/absolute-path.ts";
import { printLine, printToStderr } from "../output.ts";
import {
  DRIVER,
  linkDriver,
  linkPrograms,
  PODMAN_DIRECTORY,
  PROGRAM_NAMES,
  recordedDirectories,
  requireOtherDirectory,
  unlinkPrograms,
} from "../program-links.ts";
import { dhcpUnits } from "../dhcp-units.ts";
import { residentUnits } from "../resident-units.ts";
import { checkUninstall } from "../uninstall-check.ts";
import { installUnits, installUnitsUnasked, removeUnits } from "../units.ts";

const PROGRAM = "patchbay";

export const installCommand: Command = {
  runsByItself: true,
  printsAfterwards: true,
  summary: "install this program in a CNI plugin directory under every plugin name",
  operands: "DIR",
  operandCount: [1, 1],
  options: {
    bin: { value: "DIR", help: "also link patchbay and cnitool into DIR, for the command line" },
    podman: {
      value: "DIR",
      otherwise: PODMAN_DIRECTORY,
      help: `also link patchbay into DIR (${PODMAN_DIRECTORY}), as a driver of podman's networks`,
    },
    resident: {
      help:
        "let systemd run `patchbay serve` from DIR, started by the first call; the first installation does so unasked",
    },
    "no-resident": { help: "leave that out, or remove it; calls run by themselves" },
    dhcp: { help: "also let systemd run `patchbay dhcp` from DIR, for the leases of the plugin dhcp" },
    "no-dhcp": { help: "remove what --dhcp made; nobody renews leases" },
    uninstall: { help: "remove the plugins and put back what they replaced" },
    force: { help: "with --uninstall: even when something is attached that only this program can remove" },
  },
  notes:
    `A file that has one of the names is kept in ${BACKUP} of its directory, and put back by --uninstall. Of two that\n` +
    "had the same name, one after the other, the later one is kept.\n",
  run(given: Given) {
    const directory = absolutePath(given.operands[0]!);
    const [bin, podman] = ["bin", "podman"].map((option) => given.value(option)).map((path) =>
      path && absolutePath(path)
    );
    requireOtherDirectory("bin", bin, directory);
    requireOtherDirectory("podman", podman, directory);
    refuseTogether(given, ["resident", "no-resident", "uninstall"]);
    refuseTogether(given, ["dhcp", "no-dhcp", "uninstall"]);
    if (given.has("uninstall")) {
      for (const each of [directory, ...recordedDirectories(directory)]) judgePlaces(each, []);
      if (!exists(directory)) printToStderr(`patchbay install: there is no ${directory}; nothing is installed there`);
      checkWhatStays(directory, given.has("force"));
      removeUnits(residentUnits, directory);
      removeUnits(dhcpUnits, directory);
      unlinkPrograms(directory);
      uninstall(directory);
    } else {
      judgePlaces(directory, pluginNames);
      if (bin !== undefined) judgePlaces(bin, PROGRAM_NAMES);
      if (podman !== undefined) judgePlaces(podman, [DRIVER]);
      const isFirst = install(directory);
      if (bin !== undefined) linkPrograms(bin, directory);
      if (podman !== undefined) linkDriver(podman, directory);
      if (given.has("resident")) installUnits(residentUnits, directory);
      else if (isFirst && !given.has("no-resident")) installUnitsUnasked(residentUnits, directory);
      if (given.has("no-resident")) removeUnits(residentUnits, directory);
      if (given.has("dhcp")) installUnits(dhcpUnits, directory);
      if (given.has("no-dhcp")) removeUnits(dhcpUnits);
    }
    return 0;
  },
};

function refuseTogether(given: Given, options: readonly string[]): void {
  const [first, second] = options.filter((option) => given.has(option));
  if (second !== undefined) throw new UsageError(`--${first} and --${second} exclude each other`);
}

/** Returns whether the program was not there before. */
function install(directory: string): boolean {
  const own = identify("/proc/self/exe");
  refuseElevated("/proc/self/exe", own);
  libc.umask(0o022); // everybody may read a plugin directory
  makeDirectories(directory, 0o755);
  const program = `${directory}/${PROGRAM}`;
  const present = identifyEntry(program);
  if (present !== undefined) refuseElevated(program, present);
  if (present?.id !== own.id) {
    replaceWithCopy(program, "/proc/self/exe", 0o755);
    printLine(`${program}: ${present === undefined ? "installed" : "replaced"}`);
  }
  for (const name of pluginNames) linkWithBackup(`${directory}/${name}`, PROGRAM);
  syncDirectory(directory);
  return present === undefined;
}

/** The plugins that are back after uninstalling must be able to remove what is attached now, unless `force`. */
function checkWhatStays(directory: string, force: boolean): void {
  const names = listDirectory(directory);
  const isOurs = (name: string) => linkTarget(`${directory}/${name}`) === PROGRAM;
  const willExist = (name: string) => isOurs(name) ? hasBackup(`${directory}/${name}`) : names.includes(name);
  if (names.some(isOurs)) checkUninstall(willExist, force);
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
