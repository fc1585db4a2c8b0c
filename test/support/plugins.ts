/**
 * Calls plugins as an engine does: by path, with CNI_* in the environment and the configuration on stdin.
 *
 * There are two sets of plugins: ours, links to `dist/patchbay` by plugin name, and Debian's build of the Go plugins, or
 * those in PATCHBAY_TEST_GO_PLUGINS.
 */
import { existsSync, mkdirSync, readlinkSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { pluginNames } from "../../src/plugins/table.ts";
import type { Container, Machine, Outcome, RunOptions } from "./machine.ts";

export const GO_PLUGINS = process.env.PATCHBAY_TEST_GO_PLUGINS ?? "/usr/lib/cni";
/** PATCHBAY_TEST_PROGRAM names another build, so that dist/ may be built again while the tests run. */
export const PATCHBAY = process.env.PATCHBAY_TEST_PROGRAM ?? resolve(import.meta.dir, "../../dist/patchbay");

let linked: string | undefined;

/** A directory with the built binary under each plugin's name, for CNI_PATH; PATCHBAY_TEST_PLUGINS names another. */
export function patchbayPlugins(): string {
  linked ??= process.env.PATCHBAY_TEST_PLUGINS;
  if (linked !== undefined) return linked;
  if (!existsSync(PATCHBAY)) throw new Error("dist/patchbay is missing: run `npm run build` first");
  const directory = resolve(PATCHBAY, "../test-plugins");
  mkdirSync(directory, { recursive: true });
  for (const name of pluginNames) link(join(directory, name));
  return linked = directory;
}

/** Test files run side by side, so another one may have made the link. */
export function link(path: string, target = PATCHBAY): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST" || readlinkSync(path) !== target) throw error;
  }
}

export interface Call {
  plugin: string;
  command: string;
  /** An object, or the exact text of stdin. */
  conf: unknown;
  container?: Container;
  containerId?: string;
  ifName?: string;
  /** CNI_ARGS. */
  args?: string;
  /** Replaces or, when undefined, removes single variables. */
  env?: Record<string, string | undefined>;
}

export interface Answer extends Outcome {
  /** stdout as JSON, or undefined when it is not JSON. */
  // deno-lint-ignore no-explicit-any
  json: any;
}

export async function cni(machine: Machine, bin: string, call: Call, options: RunOptions = {}): Promise<Answer> {
  const command = [join(bin, call.plugin)];
  return answerOf(await machine.run(command, { ...options, stdin: stdinOf(call), env: environmentOf(bin, call) }));
}

export function answerOf(outcome: Outcome): Answer {
  try {
    return { ...outcome, json: JSON.parse(outcome.stdout) };
  } catch {
    return { ...outcome, json: undefined };
  }
}

export function stdinOf(call: Call): string {
  return typeof call.conf === "string" ? call.conf : JSON.stringify(call.conf);
}

export function environmentOf(bin: string, call: Call): Record<string, string> {
  const variables: Record<string, string | undefined> = {
    CNI_COMMAND: call.command,
    CNI_CONTAINERID: call.containerId ?? (call.container && `ctr-${call.container.name}`),
    CNI_NETNS: call.container?.netnsPath,
    CNI_IFNAME: call.ifName ?? (call.container && "eth0"),
    CNI_ARGS: call.args,
    CNI_PATH: bin,
    ...call.env,
  };
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
