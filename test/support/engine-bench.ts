/**
 * The engine without a kernel: kinds of resources that write down what is asked of them, ledgers in a directory of their
 * own, and hosts whose container is data. What the engine decides shows in what it asks.
 */
import { afterEach, beforeEach } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorText } from "../../src/cni/error.ts";
import type { Invocation, Verb } from "../../src/cni/invocation.ts";
import { meansPlugin } from "../../src/cni/plugin-name.ts";
import type { Result } from "../../src/cni/result.ts";
import type { Container } from "../../src/contract/host.ts";
import type { Attachment, PluginConfig, PluginDefinition } from "../../src/contract/plugin.ts";
import type { Resource } from "../../src/contract/resource.ts";
import { openLedger } from "../../src/engine/ledger/open-ledger.ts";
import type { AddAnswer, LedgerHeader } from "../../src/engine/ledger/record.ts";
import { openSession } from "../../src/engine/run.ts";
import type { SessionOptions } from "../../src/engine/session.ts";
import * as pluginTable from "../../src/plugins/table.ts";
import { whileWarning } from "../../src/process/warn.ts";
import { containers, containerWith, NETNS, onTheHost, opens, replacedHosts } from "./engine-hosts.ts";
import { asked, replacedKinds } from "./engine-kinds.ts";
import { replacedExports } from "./replaced-exports.ts";

export * from "./engine-hosts.ts";
export * from "./engine-kinds.ts";

/** Plugins that other plugins and the operator's commands find by their names. */
export const plugins: Record<string, PluginDefinition<PluginConfig>> = {};

const { pluginNamed, loadPlugin, loadRecorded } = pluginTable;
const benchNamed = (name: string) =>
  Object.hasOwn(plugins, name) ? name : Object.keys(plugins).find((plugin) => meansPlugin(name, plugin));
const load = (name: string) => {
  const found = benchNamed(name);
  return found === undefined ? loadPlugin(name) : plugins[found];
};
const replacedPlugins = replacedExports(require.resolve("../../src/plugins/table.ts"), pluginTable, {
  pluginNamed: (name: string) => benchNamed(name) ?? pluginNamed(name),
  loadPlugin: load,
  loadRecorded: (name: string) => load(name) ?? loadRecorded(name),
});
const replaced = [replacedPlugins, replacedKinds, replacedHosts];

export const owner = { network: "net", containerId: "ctr", ifName: "eth0" };
/** A result whose link on the host has that name. */
export const resultWith = (link: string, more: Partial<Result> = {}): Result => ({
  cniVersion: "1.1.0",
  interfaces: [{ name: link }, { name: owner.ifName, mac: "02:00:00:00:00:0a", sandbox: NETNS }],
  ips: [{ address: "10.0.0.5/24" }],
  ...more,
});

/** The result of the ADD that `answerWith("veth1")` stands for in a ledger. */
export const prevResult = resultWith("veth1");
/** A call whose prevResult confirms that ADD. */
export const confirmed = { conf: { prevResult } };

export const answerWith = (link: string): AddAnswer => ({ links: [link], addresses: ["10.0.0.5/24"] });

/** A plugin whose ADD makes `list`. */
export function pluginOf(
  list: readonly Resource<unknown>[],
  more: Partial<PluginDefinition<PluginConfig>> = {},
): PluginDefinition<PluginConfig> {
  return {
    name: "test",
    validate: (conf) => ({ type: "test", ...conf as object }) as PluginConfig,
    add(at: Attachment<PluginConfig>) {
      at.applyAll(list);
      return { cniVersion: at.conf.cniVersion };
    },
    ...more,
  };
}

export function callOf(
  command: Verb,
  conf: Record<string, unknown> = {},
  more: Partial<Invocation> = {},
): Invocation {
  const stdin = JSON.stringify({ cniVersion: "1.1.0", name: owner.network, type: "test", ...conf });
  return { command, ...owner, netnsPath: NETNS, cniArgs: "", path: "", stdin, ...more };
}

/** Writes what an ADD would have written. Without an answer it has not come to its end. */
export function recorded(
  list: readonly Resource<unknown>[],
  header: Partial<LedgerHeader> = {},
  answer?: AddAnswer,
): void {
  const ledger = openLedger({
    ...owner,
    plugin: "test",
    netnsPath: NETNS,
    cniArgs: "",
    stdin: callOf("ADD").stdin,
    ...header,
  });
  ledger.intend(list);
  if (answer === undefined) ledger.keep();
  else ledger.finish(answer);
}

export interface Bench extends Disposable {
  readonly directory: string;
  /** The ledgers that there are: `net/ctr@eth0@test`. */
  ledgers(): string[];
}

export function openBench(): Bench {
  const directory = mkdtempSync(join(tmpdir(), "engine-"));
  process.env.PATCHBAY_STATE_DIR = directory;
  for (const one of replaced) one.begin();
  asked.length = opens.length = 0;
  onTheHost.pairs = () => [];
  for (const registry of [plugins, containers]) for (const name in registry) delete registry[name];
  return {
    directory,
    ledgers: () =>
      readdirSync(directory, { recursive: true }).map(String).filter((path) => path.includes("@")).sort(),
    [Symbol.dispose]() {
      for (const one of replaced) one.end();
      delete process.env.PATCHBAY_STATE_DIR;
      rmSync(directory, { recursive: true });
    },
  };
}

/** Each test of the file, or of the describe around, has a bench of its own. */
export function benchForEachTest(): Pick<Bench, "directory" | "ledgers"> {
  let bench: Bench;
  beforeEach(() => void (bench = openBench()));
  afterEach(() => bench[Symbol.dispose]());
  return {
    get directory() {
      return bench.directory;
    },
    ledgers: () => bench.ledgers(),
  };
}

export interface Run {
  conf?: Record<string, unknown>;
  call?: Partial<Invocation>;
  container?: Container;
  /** There is no namespace at CNI_NETNS. */
  isGone?: boolean;
  options?: SessionOptions;
  plugin?: Partial<PluginDefinition<PluginConfig>>;
}

export const del = (list: readonly Resource<unknown>[], how?: Run) => run("DEL", list, how);

/** Runs a verb of a plugin whose ADD makes `list`. Returns what was asked, and then what failed. */
export function run(
  verb: Verb,
  list: readonly Resource<unknown>[],
  { conf, call, container = containerWith({}), isGone, options, plugin }: Run = {},
): string[] {
  if (!isGone) containers[NETNS] = container;
  try {
    openSession(options).runVerb(pluginOf(list, plugin), callOf(verb, conf, call));
    return asked.splice(0);
  } catch (error) {
    return [...asked.splice(0), errorText(error)];
  } finally {
    delete containers[NETNS];
  }
}

/** What is warned of meanwhile. */
export function warningsOf(work: () => void): string[] {
  const said: string[] = [];
  whileWarning((message) => said.push(message), work);
  return said;
}
