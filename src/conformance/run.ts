/** Asks every plugin every demand, each on a host of its own, and tells what was seen. */
import { errorText } from "../cni/error.ts";
import { compareVersions, CURRENT_VERSION, KNOWN_VERSIONS } from "../cni/versions.ts";
import { SyscallError } from "../ffi/errno.ts";
import { exists, namesIn } from "../ffi/files.ts";
import { UntrustedFile } from "../process/trusted-executable.ts";
import { pluginNamed } from "../plugins/table.ts";
import { printedDocument, requireSuccess } from "./answer.ts";
import { type Outcome, type PluginReport, type SpecDemand } from "./demand.ts";
import { supportedVersions } from "./demands/about.ts";
import { addSucceeds } from "./demands/adding.ts";
import { demands } from "./demands/table.ts";
import { hasFeature } from "./features.ts";
import { PluginFiles } from "./files.ts";
import { shownDirectories } from "./run-directories.ts";
import { type Subject, subjects } from "./subjects.ts";
import { type Plugin, Trial } from "./trial.ts";
import { AddFailed, UnmetDemand } from "./unmet-demand.ts";

export interface Run {
  /** Where the plugins are, without links in it. */
  directory: string;
  names: readonly string[];
  /** What is known of plugins besides `subjects`, by their names. */
  configured: ReadonlyMap<string, Subject>;
  timeoutMs: number;
  /** Before each demand. */
  progress?(plugin: string, demand: string, done: number, all: number): void;
}

/** A plugin that hangs so often is not asked any more. */
const MOST_OVERDUE = 3;

/** Only for a process that `runInOwnNamespace` started: it changes the process's mounts, and ends what plugins started. */
export function runConformance(run: Run): PluginReport[] {
  const files = new PluginFiles(shownDirectories(run.directory, namesIn(run.directory)));
  files.renew();
  const lost = run.names.find((name) => !exists(`${run.directory}/${name}`));
  if (lost !== undefined) {
    throw new Error(
      `${run.directory}/${lost} leads by links through directories that the run hides: copy the plugin to its place`,
    );
  }
  return run.names.map((name) => askPlugin(run, files, name));
}

function askPlugin(run: Run, files: PluginFiles, name: string): PluginReport {
  const plugin = pluginOf(run, files, name), outcomes: Outcome[] = [];
  for (const demand of demands) {
    run.progress?.(name, demand.name, outcomes.length, demands.length);
    const reason = whySkipped(demand, plugin);
    outcomes.push(
      reason === undefined
        ? ask(demand, plugin, files, outcomes.some(isFailedAdd))
        : { demand, outcome: "skipped", reason },
    );
  }
  const { path, subject, version } = plugin;
  return { plugin: name, path, kind: subject?.kind, version, outcomes };
}

function pluginOf({ directory, configured, timeoutMs }: Run, files: PluginFiles, name: string): Plugin {
  const known = pluginNamed(name),
    subject = configured.get(name) ?? (known === undefined ? undefined : subjects[known]);
  const plugin: Plugin = {
    name,
    path: `${directory}/${name}`,
    directory,
    subject,
    versions: [],
    version: CURRENT_VERSION,
    timeoutMs,
    overdue: 0,
  };
  plugin.versions = versionsOf(plugin, files);
  plugin.version = plugin.versions.at(-1) ?? CURRENT_VERSION;
  return plugin;
}

/** The versions that the plugin lists and that we know. None when it lists none; a demand asks for the list, too. */
function versionsOf(plugin: Plugin, files: PluginFiles): string[] {
  try {
    return files.onNewHost((host) => {
      const trial = new Trial(plugin, host), stdin = JSON.stringify({ cniVersion: CURRENT_VERSION });
      const answer = trial.run(stdin, { CNI_COMMAND: "VERSION" });
      requireSuccess(answer);
      const listed = supportedVersions(printedDocument(answer));
      return KNOWN_VERSIONS.filter((version) => listed.includes(version));
    });
  } catch {
    return [];
  }
}

function whySkipped(demand: SpecDemand, { subject, version, overdue }: Plugin): string | undefined {
  if (overdue >= MOST_OVERDUE) return `${overdue} calls had not ended in time, so it is not called any more`;
  if (compareVersions(version, demand.since) < 0) {
    return `the demand holds from ${demand.since} on, and the plugin knows ${version}`;
  }
  if (demand.kinds === undefined) return undefined;
  if (subject === undefined) return "nothing is known of the plugin: --conf names a configuration for it";
  if (!demand.kinds.includes(subject.kind)) {
    return `nothing is demanded here of a plugin of the kind ${subject.kind}`;
  }
  const missing = subject.needs?.filter((feature) => !hasFeature(feature)) ?? [];
  return missing.length === 0 ? undefined : `the plugin needs ${missing.join(" and ")}, and this run has none`;
}

const isFailedAdd = ({ demand, outcome }: Outcome) => demand === addSucceeds && outcome === "failed";

/** A failure here does not keep the other demands from being asked: a plugin can take away what asking it needs. */
function ask(demand: SpecDemand, plugin: Plugin, files: PluginFiles, isAddFailing: boolean): Outcome {
  let byHand: readonly string[] = [];
  try {
    return files.onNewHost((host) => {
      byHand = host.byHand;
      const trial = new Trial(plugin, host), reason = demand.unless?.(trial);
      if (reason !== undefined) return { demand, outcome: "skipped", reason };
      demand.check(trial);
      return { demand, outcome: "passed" };
    });
  } catch (error) {
    if (isAddFailing && error instanceof AddFailed) {
      return { demand, outcome: "skipped", reason: `ADD fails (${addSucceeds.name})` };
    }
    if (isOfPlugin(error)) return { demand, outcome: "failed", reason: error.message, byHand };
    return { demand, outcome: "unknown", reason: `asking it failed: ${errorText(error)}`, byHand };
  }
}

/** The error tells what the plugin has done, or that it cannot be executed. Other errors are failures of ours. */
function isOfPlugin(error: unknown): error is Error {
  return error instanceof UnmetDemand || error instanceof UntrustedFile ||
    error instanceof SyscallError && (error.call === "fork/exec" || error.call === "write");
}
