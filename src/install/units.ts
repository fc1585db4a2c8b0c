/** Services of systemd: writing their units, and removing them. */
import { errorText } from "../cni/error.ts";
import { collectFailures } from "../contract/failures.ts";
import { environmentEntries } from "../ffi/environment.ts";
import { findInPath } from "../ffi/find-in-path.ts";
import { exists, makeDirectories, readTextFile, removeFile, replaceFile } from "../ffi/files.ts";
import { fromUtf8 } from "../ffi/libc.ts";
import { describeEnding, hasSucceeded } from "../ffi/spawn.ts";
import { isSystemdRunning, SYSTEMD_DIRECTORY } from "../ffi/systemd.ts";
import { runTrusted } from "../process/trusted-executable.ts";
import { warn } from "../process/warn.ts";
import { print, printLine } from "../process/output.ts";
import { type ServiceRow, unitNames, type Units } from "../services/service.ts";
import { programIn } from "./program-links.ts";

const PLACE = "/etc/systemd/system";
/** systemd.unit(5). */
const PACKAGES_UNITS = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/** The administrator's own units that last until the next boot. */
const PASSING_UNITS = "/run/systemd/system";
const NOT_INSTALLED =
  `systemd does not run here (there is no ${SYSTEMD_DIRECTORY}), so no service was installed. Instead, have the init system`;

/** For the program at this path: what packages contain. */
export function unitFiles({ socket, service }: Units, program: string): { name: string; text: string }[] {
  return [...socket === undefined ? [] : [socket], { name: service.name, text: service.text(quoted(program)) }];
}

/** The unit that is enabled. */
function firstOf({ socket, service }: Units): string {
  return (socket ?? service).name;
}

/** As `install` writes them and knows them again. */
export function markedUnitFiles({ units, mark }: ServiceRow, program: string): { name: string; text: string }[] {
  return unitFiles(units, program).map(({ name, text }) => ({ name, text: `${mark}\n${text}` }));
}

/** Throws when `installUnits` would take the place of what others have there. */
export function judgeUnits(service: ServiceRow): void {
  if (!isSystemdRunning()) return;
  for (const name of unitNames(service.units)) refuseOthers(name, service);
  refusePackages(service);
}

/** For the program in the directory. */
export function installUnits(installed: ServiceRow, directory: string): void {
  const { units, withoutSystemd, outlook } = installed, program = programIn(directory);
  if (!isSystemdRunning()) return print(`${NOT_INSTALLED}\n${withoutSystemd(program)}`);
  const changed = markedUnitFiles(installed, program).map(({ name, text }) => writeUnit(name, text)).includes(true);
  if (changed) systemctl("daemon-reload");
  systemctl("enable", "--now", firstOf(units));
  // A unit that runs has what its file said before.
  if (changed) systemctl("try-restart", units.service.name);
  printLine(outlook);
}

/**
 * For a first installation: nobody has chosen otherwise. Does nothing where systemd does not run, or where a unit of that
 * name is there already. The plugins are installed whether this succeeds or not.
 */
export function installUnitsUnasked(service: ServiceRow, directory: string): void {
  const names = unitNames(service.units);
  const isThere = names.some((name) =>
    [PLACE, ...PACKAGES_UNITS, PASSING_UNITS].some((place) => exists(`${place}/${name}`))
  );
  if (isThere || !isSystemdRunning() || process.geteuid!() !== 0) return;
  try {
    installUnits(service, directory);
    printLine(`\`patchbay install --no-${service.option} ${directory}\` removes that again`);
  } catch (error) {
    // The failure that brought us here is told.
    collectFailures([
      () => systemctl("disable", "--now", ...names),
      ...names.map((name) => () => void removeFile(`${PLACE}/${name}`)),
      () => systemctl("daemon-reload"),
    ], (step) => step());
    warn(
      `${errorText(error)}; so the units were removed again. Everything works without them; ` +
        `\`patchbay install --${service.option} ${directory}\` tries it again` +
        (service.permission === undefined ? "" : `, with \`--${service.option}=calls\` a call starts it`),
    );
  }
}

/** Does nothing when there are no units of ours, or when they start another program than the one in the directory. */
export function removeUnits({ units, mark, command }: ServiceRow, directory: string): void {
  const present = unitNames(units).map((name) => ({ name, text: readTextFile(`${PLACE}/${name}`) }));
  const text = present.at(-1)!.text;
  if (text !== undefined && !starts(text, `${quoted(programIn(directory))} ${command}`)) {
    printLine(`${PLACE}/${units.service.name} stays: it does not start ${programIn(directory)}`);
    return;
  }
  if (!present.some(({ text }) => text?.startsWith(mark))) return;
  if (isSystemdRunning()) systemctl("disable", "--now", ...unitNames(units));
  for (const { name, text } of present) {
    if (text?.startsWith(mark) && removeFile(`${PLACE}/${name}`)) printLine(`${PLACE}/${name}: removed`);
  }
  if (isSystemdRunning()) systemctl("daemon-reload");
}

/** Whatever options follow: an earlier version may have had others. */
function starts(unit: string, command: string): boolean {
  const line = `ExecStart=${command}`;
  return unit.split("\n").some((one) => one === line || one.startsWith(`${line} `));
}

function refuseOthers(name: string, { mark, option }: ServiceRow): void {
  const path = `${PLACE}/${name}`, present = readTextFile(path);
  if (present === undefined || present.startsWith(mark)) return;
  throw new Error(`${path} was not written by patchbay; remove it, or keep it and leave --${option} out`);
}

function refusePackages({ packagedUnits, option }: ServiceRow): void {
  const packaged = firstOf(packagedUnits);
  const path = PACKAGES_UNITS.map((folder) => `${folder}/${packaged}`).find(exists);
  if (path === undefined) return;
  throw new Error(
    `${path} is there, of a package of patchbay, and both would be one service; leave --${option} out ` +
      `(\`systemctl enable --now ${packaged}\` starts the package's), or remove the package before`,
  );
}

/** Returns whether it was another before. */
function writeUnit(name: string, text: string): boolean {
  const path = `${PLACE}/${name}`, present = readTextFile(path);
  if (present === text) return false;
  makeDirectories(PLACE, 0o755);
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
