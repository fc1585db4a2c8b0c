/** Services of systemd: writing their units, and removing them. */
import { errorText } from "../cni/error.ts";
import { environmentEntries } from "../ffi/environment.ts";
import { findInPath } from "../ffi/find-in-path.ts";
import { exists, makeDirectories, readTextFile, removeFile, replaceFile } from "../ffi/files.ts";
import { fromUtf8 } from "../ffi/libc.ts";
import { describeEnding, hasSucceeded } from "../ffi/spawn.ts";
import { isSystemdRunning, SYSTEMD_DIRECTORY } from "../ffi/systemd.ts";
import { runTrusted } from "../process/trusted-executable.ts";
import { warn } from "../process/warn.ts";
import { print, printLine } from "../process/output.ts";
import { programIn } from "./program-links.ts";

const UNITS = "/etc/systemd/system";
/** systemd.unit(5). */
const PACKAGES_UNITS = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/** Of whoever administers the host until the next boot. */
const PASSING_UNITS = "/run/systemd/system";
export const NOT_INSTALLED =
  `systemd does not run here (there is no ${SYSTEMD_DIRECTORY}), so no service was installed.`;

/** A service of ours that its socket starts. */
export interface ServiceUnits {
  socket: { name: string; text: string };
  service: { name: string; text(program: string): string };
  /** The socket's unit in our packages, which listens at the same place. */
  packagedSocket: string;
  /** The first line of both files: whose they are. */
  mark: string;
  /** The option of `install` that writes them. */
  option: string;
  /** What follows the program in the service's command line, before options. */
  command: string;
  /** What happens next. */
  outlook: string;
  /** What to do where systemd does not run. */
  withoutSystemd(program: string): string;
}

/** Both, for the program at this path: what packages contain. */
export function unitFiles({ socket, service }: ServiceUnits, program: string): { name: string; text: string }[] {
  return [socket, { name: service.name, text: service.text(quoted(program)) }];
}

/** Both, as `install` writes them and knows them again. */
export function markedUnitFiles(units: ServiceUnits, program: string): { name: string; text: string }[] {
  return unitFiles(units, program).map(({ name, text }) => ({ name, text: `${units.mark}\n${text}` }));
}

/** Throws when `installUnits` would take the place of what others have there. */
export function judgeUnits(units: ServiceUnits): void {
  if (!isSystemdRunning()) return;
  for (const { name } of [units.socket, units.service]) refuseOthers(name, units);
  refusePackages(units);
}

/** For the program in the directory. */
export function installUnits(units: ServiceUnits, directory: string): void {
  const { socket, service, withoutSystemd, outlook } = units, program = programIn(directory);
  if (!isSystemdRunning()) return print(withoutSystemd(program));
  const changed = markedUnitFiles(units, program).map(({ name, text }) => writeUnit(name, text)).includes(true);
  if (changed) systemctl("daemon-reload");
  systemctl("enable", "--now", socket.name);
  // A unit that runs has what its file said before.
  if (changed) systemctl("try-restart", service.name);
  printLine(outlook);
}

/**
 * For a first installation: nobody has chosen otherwise. Does nothing where systemd does not run, or where a unit of that
 * name is there already. The plugins are installed whether this succeeds or not.
 */
export function installUnitsUnasked(units: ServiceUnits, directory: string): void {
  const names = [units.socket.name, units.service.name];
  const isThere = names.some((name) =>
    [UNITS, ...PACKAGES_UNITS, PASSING_UNITS].some((place) => exists(`${place}/${name}`))
  );
  if (isThere || !isSystemdRunning() || process.geteuid!() !== 0) return;
  try {
    installUnits(units, directory);
    printLine(`\`patchbay install --no-${units.option} ${directory}\` removes that again`);
  } catch (error) {
    tryAll([
      () => systemctl("disable", "--now", ...names),
      ...names.map((name) => () => void removeFile(`${UNITS}/${name}`)),
      () => systemctl("daemon-reload"),
    ]);
    warn(
      `${errorText(error)}; so the units were removed again. Everything works without them; ` +
        `\`patchbay install --${units.option} ${directory}\` tries it again`,
    );
  }
}

/** What one step cannot undo, the next may. */
function tryAll(steps: readonly (() => void)[]): void {
  for (const step of steps) {
    try {
      step();
    } catch {
      // The failure that brought us here is told.
    }
  }
}

/** Does nothing when there are no units of ours. With a directory: only when they start the program in it. */
export function removeUnits({ socket, service, mark, command }: ServiceUnits, directory?: string): boolean {
  const present = [socket, service].map(({ name }) => ({ name, text: readTextFile(`${UNITS}/${name}`) }));
  const text = present[1]!.text;
  if (directory !== undefined && text !== undefined && !starts(text, `${quoted(programIn(directory))} ${command}`)) {
    printLine(`${UNITS}/${service.name} stays: it does not start ${programIn(directory)}`);
    return false;
  }
  if (!present.some(({ text }) => text?.startsWith(mark))) return false;
  if (isSystemdRunning()) systemctl("disable", "--now", socket.name, service.name);
  for (const { name, text } of present) {
    if (text?.startsWith(mark) && removeFile(`${UNITS}/${name}`)) printLine(`${UNITS}/${name}: removed`);
  }
  if (isSystemdRunning()) systemctl("daemon-reload");
  return true;
}

/** Whatever options follow: an earlier version may have had others. */
function starts(unit: string, command: string): boolean {
  const line = `ExecStart=${command}`;
  return unit.split("\n").some((one) => one === line || one.startsWith(`${line} `));
}

function refuseOthers(name: string, { mark, option }: ServiceUnits): void {
  const path = `${UNITS}/${name}`, present = readTextFile(path);
  if (present === undefined || present.startsWith(mark)) return;
  throw new Error(`${path} was not written by patchbay; remove it, or keep it and leave --${option} out`);
}

function refusePackages({ packagedSocket, option }: ServiceUnits): void {
  const path = PACKAGES_UNITS.map((folder) => `${folder}/${packagedSocket}`).find(exists);
  if (path === undefined) return;
  throw new Error(
    `${path} is there, of a package of patchbay, and both would listen at one place; leave --${option} out ` +
      `(\`systemctl enable --now ${packagedSocket}\` starts the package's), or remove the package before`,
  );
}

/** Returns whether it was another before. */
function writeUnit(name: string, text: string): boolean {
  const path = `${UNITS}/${name}`, present = readTextFile(path);
  if (present === text) return false;
  makeDirectories(UNITS, 0o755);
  replaceFile(path, text, { mode: 0o644, durable: true });
  printLine(`${path}: ${present === undefined ? "installed" : "replaced"}`);
  return true;
}

function systemctl(...words: string[]): void {
  const path = findInPath("systemctl");
  if (path === undefined) throw new Error("there is no systemctl in PATH, though systemd runs");
  const program = { path, argv: ["systemctl", ...words], environment: environmentEntries() };
  const { ending, stderr } = runTrusted(program, new Uint8Array());
  if (hasSucceeded(ending)) return;
  throw new Error(`systemctl ${words.join(" ")} failed: ${fromUtf8(stderr).trim() || describeEnding(ending)}`);
}

/** systemd.service(5), "Command lines". */
function quoted(path: string): string {
  const text = path.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(text) ? text : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
