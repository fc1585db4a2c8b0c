/**
 * The options of a podman network whose driver is this program: which CNI network it is. podman keeps all values as
 * texts, in the network's file.
 */
import { closestKey } from "../../runtime/spelling.ts";

export interface Options {
  /** The name of a network in the configuration directory. Without it, the network consists of `plugins`. */
  readonly conflist: string | undefined;
  /** In the order of ADD. */
  readonly plugins: readonly string[];
  readonly pluginPath: string | undefined;
  readonly mtu: string | undefined;
  /** Published ports are for another network of the container. */
  readonly ignoresPorts: boolean;
  readonly settings: readonly Setting[];
}

/** `PLUGIN.KEY=VALUE`; the plugin `ipam` stands for the key of that name. */
export interface Setting {
  readonly plugin: string;
  readonly key: string;
  readonly value: string;
}

export const KNOWN = ["conflist", "plugins", "pluginPath", "ports", "mtu"];

export function readOptions(given: Readonly<Record<string, string>> = {}): Options {
  const settings: Setting[] = [];
  for (const option of Object.keys(given)) {
    const value = given[option]!, dot = option.indexOf(".");
    if (dot > 0) settings.push({ plugin: option.slice(0, dot), key: option.slice(dot + 1), value });
    else if (!KNOWN.includes(option)) throw unknownOption(option, value);
  }
  const { conflist, plugins, pluginPath, ports, mtu } = given;
  if (ports !== undefined && ports !== "ignore") throw refused("ports", ports, 'the only value is "ignore"');
  if (conflist !== undefined) refuseBeside(given);
  return {
    conflist,
    plugins: plugins?.split(",") ?? [],
    pluginPath,
    mtu,
    ignoresPorts: ports !== undefined,
    settings,
  };
}

export function refused(option: string, value: string, reason: string): Error {
  return new Error(`option ${option}=${value}: ${reason}`);
}

function unknownOption(option: string, value: string): Error {
  const meant = closestKey(option, KNOWN), hint = meant === undefined ? "" : `did you mean "${meant}"? `;
  return refused(option, value, `it is not known; ${hint}there are ${KNOWN.join(", ")}, and PLUGIN.KEY`);
}

function refuseBeside(given: Readonly<Record<string, string>>): void {
  const other = Object.keys(given).find((option) => !["conflist", "pluginPath", "ports"].includes(option));
  if (other === undefined) return;
  throw refused(other, given[other]!, `conflist=${given["conflist"]} says all of the network; change it in its file`);
}
