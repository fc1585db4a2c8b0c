/** `explain --bundle`: all that somebody needs who does not see this host, in one file. */
import { errorText } from "../../cni/error.ts";
import { unreadableLedgers } from "../../engine/ledger/ledger.ts";
import { inspect } from "../../engine/operator/inspect.ts";
import { HostView } from "../../engine/ledger/whereabouts.ts";
import type { InspectedAttachment } from "../../contract/summaries.ts";
import type { KnownAttachment } from "../../engine/operator/known-attachment.ts";
import type { HostWorld } from "../../explain/host-world.ts";
import { namespaceFiles } from "../../explain/report/namespace-files.ts";
import { type ReportFile, reportTar } from "../../explain/report/report.ts";
import { absolutePath } from "../../ffi/absolute-path.ts";
import { variable } from "../../ffi/environment.ts";
import { EEXIST, isErrno } from "../../ffi/errno.ts";
import {
  idAt,
  listDirectory,
  O_RDONLY,
  readAllFrom,
  readConfiguredFile,
  whileOpen,
  writeNewFile,
} from "../../ffi/files.ts";
import { fromUtf8 } from "../../ffi/libc.ts";
import { withScratchNetns } from "../../ffi/netns.ts";
import { readSysctl } from "../../ffi/sysctl.ts";
import { isTerminal } from "../../ffi/terminal.ts";
import { printBytes, printToStderr } from "../../process/output.ts";
import { openExistingState, readTrustedState } from "../../process/state-file.ts";
import { VERSION } from "../../process/version.ts";
import { cacheFiles } from "../../runtime/cache.ts";
import { misnamedFiles, networkNames } from "../../runtime/conf/directory.ts";
import { networkPaths, pluginFolderPaths } from "../../runtime/conf/network-file.ts";
import { withoutExtensions } from "../../runtime/conf/positioned-json.ts";
import { planNetwork } from "../../runtime/plan.ts";
import { type GivenArguments, UsageError } from "./command.ts";
import { configDirectoryOf, givenNetwork, requestTo, runtimeOf } from "./network-arguments.ts";
import { shownInFull } from "./shown-attachments.ts";

/** Before the work: nothing is written over, and a terminal would not show it. */
export function refuseBundle(file: string): void {
  if (file === "-" && isTerminal(1)) throw new UsageError("--bundle - is for a pipe or a file: stdout is a terminal");
  if (file !== "-" && idAt(absolutePath(file)) !== undefined) throw takenError(file);
}

const takenError = (file: string) =>
  new Error(`${file} is there already, and nothing is written over: name another file, or remove it`);

export function writeBundle(
  file: string,
  given: GivenArguments,
  world: HostWorld,
  attachments: readonly KnownAttachment[],
  explanation: { text: string; document: unknown },
): void {
  const known = attachments.map(({ containerId }) => containerId).filter((id) => /^[0-9a-z-]{20,}$/.test(id));
  const files: ReportFile[] = [
    ["explanation.txt", () => explanation.text],
    ["explanation.json", () => JSON.stringify(explanation.document)],
    ...namespaceFiles("host", world.host, known),
    ["trace.jsonl", endOfTrace],
    ...listed("configurations/unread.txt", () => configurationFiles(given)),
    ...listed("results/unread.txt", () => recordFiles(given, attachments)),
    ...world.containers.flatMap((facts) => namespaceFiles(`containers/${flat(facts.label)}`, facts, known)),
  ];
  const bytes = reportTar(files, new Date(), versions(), known);
  if (file === "-") return printBytes(bytes);
  try {
    writeNewFile(absolutePath(file), bytes);
  } catch (error) {
    throw isErrno(error, EEXIST) ? takenError(file) : error;
  }
  printToStderr(`${file} is written; look through it before you give it away: names and addresses are in it`);
}

const flat = (name: string) => name.replaceAll("/", "_");

function versions(): string[] {
  const distribution = /^PRETTY_NAME="?([^"\n]*)/m.exec(readConfiguredFile("/etc/os-release") ?? "")?.[1];
  const system = `Linux ${readSysctl("kernel/osrelease")} ${process.arch}, ${distribution ?? "unknown distribution"}`;
  return [`patchbay ${VERSION}, bun ${Bun.version}`, system];
}

/** Where a directory cannot be listed, a file says why. */
function listed(name: string, files: () => ReportFile[]): ReportFile[] {
  try {
    return files();
  } catch (error) {
    return [[name, () => errorText(error)]];
  }
}

function recordFiles(given: GivenArguments, attachments: readonly KnownAttachment[]): ReportFile[] {
  const { pluginPath, cacheDirectory } = runtimeOf(given),
    results = `${cacheDirectory}/results`,
    view = new HostView();
  let found: InspectedAttachment[] | undefined;
  const inspected = () => found ??= attachments.map((attachment) => inspect(attachment, pluginPath, view));
  const ledgers = attachments.flatMap((attachment) => attachment.ledgers);
  const state = (name: string, path: string): ReportFile => [name, () => readTrustedState(path) ?? ""];
  return [
    ["inspect.txt", () => shownInFull(inspected())],
    ["inspect.json", () => JSON.stringify(inspected())],
    ["ledgers/unreadable.json", () => JSON.stringify(unreadableLedgers())],
    ...ledgers.map(({ path }) => state(`ledgers/${path.split("/").slice(-2).join("@")}.jsonl`, path)),
    ...cacheFiles(cacheDirectory).map((name) => state(`results/${name}.json`, `${results}/${name}`)),
    ["resolv.conf.txt", () => readConfiguredFile("/etc/resolv.conf") ?? ""],
  ];
}

function configurationFiles(given: GivenArguments): ReportFile[] {
  const directory = configDirectoryOf(given);
  const paths = networkPaths(directory).flatMap((path) => [path, ...pluginFolderPaths(path)]);
  return [
    ...networkNames(directory).map((name): ReportFile => [`plan/${flat(name)}.json`, () => planned(given, name)]),
    // Other files may be of other programs, with keys in them.
    ["configurations/names.json", () => JSON.stringify(listDirectory(directory))],
    ...[...paths, ...misnamedFiles(directory).map(({ path }) => path)].map((path): ReportFile => [
      `configurations/${flat(path.slice(directory.length + 1))}.json`,
      () => withoutComments(readConfiguredFile(path) ?? ""),
    ]),
  ];
}

/** What is no JSON stays as it is. */
function withoutComments(text: string): string {
  try {
    return withoutExtensions(text);
  } catch {
    return text;
  }
}

function planned(given: GivenArguments, name: string): string {
  const network = givenNetwork(given, name);
  const plan = withScratchNetns((netns) =>
    planNetwork(runtimeOf(given), network, requestTo(network, { ...given, operands: [name, netns] }))
  );
  return JSON.stringify(plan.map((plugin) => ({ ...plugin, obstacles: plugin.obstacles.map(errorText) })));
}

const TRACE_BYTES = 256 * 1024;

/** From the beginning of a line on. */
function endOfTrace(): string {
  const path = variable("PATCHBAY_TRACE");
  const open = path?.startsWith("/") ? openExistingState(path, O_RDONLY) : undefined;
  if (open === undefined) return "";
  const from = Math.max(0, open.size - TRACE_BYTES);
  const text = whileOpen(open.fd, (fd) => fromUtf8(readAllFrom(from, fd, path!)));
  return from === 0 ? text : text.slice(text.indexOf("\n") + 1);
}
