/** `patchbay conformance DIR`. */
import { errorText } from "../../../cni/error.ts";
import { isObject, parseDocument } from "../../../cni/json.ts";
import { isInOwnNamespace, runInOwnNamespace } from "../../../conformance/own-process-namespace.ts";
import { executablesIn } from "../../../conformance/files.ts";
import { asJUnit, countsOfAll, forPeople, forPrograms } from "../../../conformance/report.ts";
import { type Run, runConformance } from "../../../conformance/run.ts";
import { whyNotShown } from "../../../conformance/run-directories.ts";
import { everyKind, type Kind, type Subject } from "../../../conformance/subjects.ts";
import {
  exists,
  identify,
  O_CREAT,
  O_TRUNC,
  O_WRONLY,
  openFile,
  readConfiguredFile,
  writeAll,
} from "../../../ffi/files.ts";
import { utf8 } from "../../../ffi/libc.ts";
import { isTerminal, printableWord } from "../../../ffi/terminal.ts";
import { withInheritedUmask } from "../../../ffi/umask.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { print, printJson, printToStderr } from "../../../process/output.ts";

/** Apart from what the plugins do not meet. */
const RUN_FAILED = 3;

export const conformanceCommand: Command = {
  summary: "hold a directory of CNI plugins to the specification's demands, one by one",
  operands: "DIR [PLUGIN…]",
  operandCount: [1, Infinity],
  needsRoot: true,
  runsByItself: true,
  options: {
    conf: { value: "FILE", help: "a network configuration for the plugin that its type names; may be repeated" },
    kind: { value: "main|ipam|meta", help: "what plugins of --conf are (default: main)" },
    timeout: { value: "SECONDS", help: "how long a plugin may take for a call (default: 30)" },
    json: { help: "print JSON" },
    junit: { value: "FILE", isNeverEmpty: true, help: "also write the results to FILE, as JUnit's XML" },
  },
  notes:
    "The plugins run as root on hosts and in containers of their own: namespaces, where all files but those in /run,\n" +
    "/var/lib and /tmp are mounted read-only, and these are in memory. That keeps this machine from plugins that are\n" +
    "wrong, not from hostile ones: root can mount files again, to write to them. Without PLUGIN, every executable of\n" +
    "DIR is asked.\n",
  exitStatus: '1 when a demand is not met; 3 when the run failed, or a demand could not be asked ("unknown").',
  examples: [
    { args: "/opt/cni/bin", what: "every plugin in there" },
    { args: "/usr/lib/cni bridge portmap --json", what: "two of them, for programs" },
  ],
  run(given) {
    const asked = askedFor(given);
    try {
      return isInOwnNamespace() ? runAndReport(asked, given) : runInOwnNamespace(process.argv.slice(2));
    } catch (error) {
      printToStderr(`patchbay conformance: the run itself failed: ${errorText(error)}`);
      return RUN_FAILED;
    }
  },
};

interface Asked extends Run {
  /** What the directory has besides, and nobody can open. */
  unreadable: readonly string[];
}

/** Throws UsageError, also for files that cannot be read: 1 would say that a demand is not met. */
function askedFor(given: GivenArguments): Asked {
  try {
    const timeoutMs = timeoutOf(given), [directory, ...wanted] = given.operands;
    const configured = configuredSubjects(given), { path, names, unreadable } = executablesIn(directory!);
    if (names.length === 0) {
      throw new UsageError(`${directory} has no executables: name the directory that the engine's plugins are in`);
    }
    const unknown = wanted.find((name) => !names.includes(name));
    if (unknown !== undefined) {
      throw new UsageError(`${directory} has no plugin ${unknown}; it has ${names.join(", ")}`);
    }
    const unused = [...configured.keys()].find((name) => !names.includes(name));
    if (unused !== undefined) {
      throw new UsageError(
        `--conf has the type ${unused}, and ${directory} no such plugin; it has ${names.join(", ")}`,
      );
    }
    refuseToOverwrite(given, names.map((name) => `${path}/${name}`));
    const asked = wanted.length === 0 ? names : [...new Set(wanted)], refused = whyNotShown(path, asked);
    if (refused !== undefined) throw new UsageError(refused);
    return { directory: path, names: asked, configured, timeoutMs, unreadable };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(errorText(error));
  }
}

/** The report's file is emptied before the run. */
function refuseToOverwrite(given: GivenArguments, plugins: readonly string[]): void {
  const junit = given.value("junit");
  if (junit === undefined || !exists(junit)) return;
  const { id } = identify(junit), read = [...plugins, ...given.values("conf")].find((one) => identify(one).id === id);
  if (read !== undefined) throw new UsageError(`--junit ${junit} is ${read}, which the run needs: name another file`);
}

/** Returns the exit status. */
function runAndReport(asked: Asked, given: GivenArguments): number {
  for (const name of asked.unreadable) {
    printToStderr(`${asked.directory}/${printableWord(name)} is not asked: its name is not UTF-8; rename it`);
  }
  const junit = given.value("junit"), report = junit === undefined ? undefined : openReport(junit);
  const progress = isTerminal(2) ? showProgress : undefined;
  const reports = runConformance({ ...asked, ...progress && { progress } });
  if (progress !== undefined) writeAll(2, utf8(CLEAR_LINE));
  if (given.has("json")) printJson(forPrograms(reports));
  else print(forPeople(reports));
  if (report !== undefined) writeAll(report, utf8(asJUnit(reports)), junit);
  const { failed, unknown } = countsOfAll(reports);
  return unknown > 0 ? RUN_FAILED : failed > 0 ? 1 : 0;
}

const CLEAR_LINE = "\r\x1b[K";

function showProgress(plugin: string, demand: string, done: number, all: number): void {
  writeAll(2, utf8(`${CLEAR_LINE}${printableWord(plugin)}: ${done} of ${all}: ${demand}`));
}

function timeoutOf(given: GivenArguments): number {
  const text = given.value("timeout") ?? "30", seconds = Number(text);
  if (text !== "" && seconds > 0 && seconds <= 3600) return seconds * 1000;
  throw new UsageError(`--timeout ${text}: seconds from above 0 to 3600, as in 30`);
}

/**
 * Before the files are read-only, and the working directory is another. Empty until then: nobody may take an earlier run's
 * results for those of a run that fails.
 */
function openReport(path: string): number {
  return withInheritedUmask(() => openFile(path, O_WRONLY | O_CREAT | O_TRUNC, 0o666));
}

function configuredSubjects(given: GivenArguments): Map<string, Subject> {
  const kind = (given.value("kind") ?? "main") as Kind, files = given.values("conf");
  if (!everyKind.includes(kind)) throw new UsageError(`--kind ${kind}: one of ${everyKind.join(", ")}`);
  if (given.has("kind") && files.length === 0) {
    throw new UsageError("--kind says what plugins of --conf are: add --conf, or leave --kind out");
  }
  return new Map(files.map((path) => {
    const text = readConfiguredFile(path);
    if (text === undefined) throw new UsageError(`--conf ${path}: no such file`);
    const { type, conf } = configurationIn(text, path);
    return [type, { kind, conf }];
  }));
}

/** A configuration, or a list of one. */
function configurationIn(text: string, path: string): { type: string; conf: Record<string, unknown> } {
  const document = parseDocument(text, path), list = isObject(document) ? document.plugins : undefined;
  if (Array.isArray(list) && list.length !== 1) {
    throw new UsageError(`--conf ${path}: "plugins" has ${list.length} entries; one configuration is asked for`);
  }
  const plugin = Array.isArray(list) ? list[0] : document;
  if (!isObject(plugin) || typeof plugin.type !== "string") {
    throw new UsageError(`--conf ${path}: "type" is missing: the name of the plugin that it is for`);
  }
  const { type, name: _name, cniVersion: _version, ...conf } = plugin;
  return { type: type as string, conf };
}
