/** One plugin on a host of its own, for one demand: attachments, and the calls that an engine would make for them. */
import { isObject } from "../cni/json.ts";
import { VALID_ATTACHMENTS } from "../cni/valid-attachments.ts";
import { compareVersions, resultFamily } from "../cni/versions.ts";
import { utf8 } from "../ffi/libc.ts";
import { Overdue } from "../process/run-program.ts";
import { runTrusted } from "../process/trusted-executable.ts";
import { type PluginAnswer, pluginAnswerOf, printedDocument, requireSuccess } from "./answer.ts";
import type { TrialContainer, TrialHost } from "./host.ts";
import { shellWord } from "../process/shell-word.ts";
import { OWN_PLUGINS } from "./run-directories.ts";
import type { Subject } from "./subjects.ts";
import { AddFailed, UnmetDemand } from "./unmet-demand.ts";

export interface Plugin {
  name: string;
  path: string;
  directory: string;
  /** Undefined when nothing is known of the plugin. */
  subject: Subject | undefined;
  /** The versions that VERSION has answered and that we know, in ascending order. */
  versions: readonly string[];
  /** The newest of its versions. */
  version: string;
  timeoutMs: number;
  /** How many of its calls have not ended in time. */
  overdue: number;
}

export interface Change {
  /** Further keys of the configuration. */
  conf?: Record<string, unknown>;
  version?: string;
  /** Variables that differ. A variable with the value undefined is not set. */
  env?: Record<string, string | undefined>;
}

export const NETWORK = "conformance";
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const ADDRESS = "10.99.0.2/24", GATEWAY = "10.99.0.1";

export class Trial {
  constructor(readonly plugin: Plugin, readonly host: TrialHost) {
    plugin.subject?.prepare?.(host);
  }

  get subject(): Subject {
    return this.plugin.subject!;
  }

  private first: TrialContainer | undefined;

  /** For calls that are refused before anything is done in it. */
  get container(): TrialContainer {
    return this.first ??= this.host.container("c1");
  }

  attachment(name: string, containerId = `conformance-${name}`): TrialAttachment {
    return new TrialAttachment(this, this.host.container(name), containerId);
  }

  /** An attachment that is made. */
  attached(name: string): TrialAttachment {
    const one = this.attachment(name);
    one.add();
    return one;
  }

  /** The configuration of a call without its attachment. */
  configuration({ conf, version = this.plugin.version }: Change = {}): Record<string, unknown> {
    return { cniVersion: version, name: NETWORK, type: this.plugin.name, ...this.plugin.subject?.conf, ...conf };
  }

  /** A call without an attachment: VERSION, STATUS, GC. */
  call(command: string, change: Pick<Change, "conf"> = {}): PluginAnswer {
    return this.run(JSON.stringify(this.configuration(change)), { CNI_COMMAND: command });
  }

  collectGarbage(valid: readonly TrialAttachment[], conf: Record<string, unknown> = {}): PluginAnswer {
    return this.call("GC", { conf: { ...conf, [VALID_ATTACHMENTS]: valid.map(({ name }) => name) } });
  }

  /** Whether the plugin is asked in this version of the specification or a newer one. */
  knows(version: string): boolean {
    return compareVersions(this.plugin.version, version) >= 0;
  }

  run(stdin: string, variables: Readonly<Record<string, string | undefined>>): PluginAnswer {
    const { path, directory, timeoutMs } = this.plugin;
    const set = Object.entries({ ...variables, CNI_PATH: `${directory}:${OWN_PLUGINS}` })
      .filter((entry): entry is [string, string] => entry[1] !== undefined);
    const words = set.map(([name, value]) => `${name}=${shellWord(value)}`).join(" ");
    this.host.byHand.push(`printf %s ${shellWord(stdin)} | ${words} ${shellWord(path)}`);
    const command = variables.CNI_COMMAND ?? "the call without CNI_COMMAND";
    try {
      const finished = runTrusted(
        {
          path,
          argv: [path],
          environment: [["PATH", PATH] as const, ...set].map(([name, value]) => utf8(`${name}=${value}`)),
          patienceMs: timeoutMs,
          hasOwnGroup: true,
        },
        utf8(stdin),
      );
      return pluginAnswerOf(command, finished);
    } catch (error) {
      if (!(error instanceof Overdue)) throw error;
      this.plugin.overdue++;
      throw new UnmetDemand(`${command} had not ended after ${timeoutMs / 1000} s, and was killed`);
    }
  }
}

export class TrialAttachment {
  readonly ifName: string;
  /** What an earlier plugin of the chain has answered. */
  private readonly before: ((version: string) => Record<string, unknown>) | undefined;
  private result: Record<string, unknown> | undefined;

  constructor(readonly trial: Trial, readonly container: TrialContainer, readonly containerId: string) {
    const { kind, ifName = "eth0" } = trial.subject;
    this.ifName = ifName;
    if (kind !== "meta") return;
    const { host, inside } = trial.host.attach(container, ifName, ADDRESS);
    const interfaces = [
      { name: host.name, mac: host.mac },
      { name: inside.name, mac: inside.mac, sandbox: container.path },
    ];
    this.before = (cniVersion) => chained(cniVersion, interfaces);
  }

  /** Returns the answer also when the call fails. */
  call(command: string, change: Change = {}): PluginAnswer {
    const { trial, container, containerId, ifName } = this;
    const version = change.version ?? trial.plugin.version;
    const prevResult = command === "ADD" ? this.before?.(version) : this.result;
    const conf = trial.configuration({ ...change, conf: { prevResult, ...change.conf } });
    return trial.run(JSON.stringify(conf), {
      CNI_COMMAND: command,
      CNI_CONTAINERID: containerId,
      CNI_NETNS: container.path,
      CNI_IFNAME: ifName,
      ...change.env,
    });
  }

  add(change: Change = {}): Record<string, unknown> {
    try {
      const answer = this.call("ADD", change);
      requireSuccess(answer);
      return this.result = printedDocument(answer);
    } catch (error) {
      throw error instanceof UnmetDemand ? new AddFailed(error.message) : error;
    }
  }

  check(): void {
    requireSuccess(this.call("CHECK"));
  }

  del(change: Change = {}, when = ""): void {
    requireSuccess(this.call("DEL", change), when);
  }

  /** What the chain's earlier plugin has answered in the plugin's own version. */
  get prevResult(): Record<string, unknown> | undefined {
    return this.before?.(this.trial.plugin.version);
  }

  get name(): Record<string, string> {
    return { containerID: this.containerId, ifname: this.ifName };
  }
}

function chained(cniVersion: string, interfaces: readonly object[]): Record<string, unknown> {
  const withVersion = resultFamily(cniVersion) === "0.3" ? { version: "4" } : {};
  const ips = [{ ...withVersion, address: ADDRESS, gateway: GATEWAY, interface: 1 }];
  return { cniVersion, interfaces, ips, dns: {} };
}

/** The objects in a list of a result. */
export function listIn(result: Record<string, unknown>, key: string): Record<string, unknown>[] {
  const list = result[key];
  return Array.isArray(list) ? list.filter(isObject) : [];
}
