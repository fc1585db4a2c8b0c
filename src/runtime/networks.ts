/** Every network of a configuration directory, and whether an attachment could be added to it: `patchbay networks`. */
import { errorText } from "../cni/error.ts";
import { asWritten, field, isObject } from "../cni/json.ts";
import { findPlugin } from "../engine/delegation/find-plugin.ts";
import type { Pool } from "../contract/plugin.ts";
import { poolsOf } from "../engine/operator/pools.ts";
import { openSession } from "../engine/run.ts";
import type { Network, NetworkPlugin } from "./conf.ts";
import { listNetworkFiles, type NetworkFile } from "./network-files.ts";
import { pluginConfig } from "./plugin-config.ts";

export interface NetworkSummary {
  file: string;
  /** Left out for a file that cannot be read. */
  name?: string;
  cniVersion?: string;
  /** Types, with that of the IPAM plugin behind a plus sign. */
  plugins: string[];
  pools: Pool[];
  /** What is broken or missing. */
  problems: string[];
}

export function summarizeNetworks(directory: string, pluginPath: string): NetworkSummary[] {
  return listNetworkFiles(directory).map((file) => summarize(file, pluginPath));
}

function summarize({ path, network, problem, hiddenBy }: NetworkFile, pluginPath: string): NetworkSummary {
  if (network === undefined) {
    const hides = `${problem}; networks in files after it are not found`;
    return { file: path, plugins: [], pools: [], problems: [hides] };
  }
  const { name, cniVersion } = network;
  const hidden = hiddenBy === undefined ? [] : [`not found by its name: ${hiddenBy} is in the way`];
  const looked = network.plugins.map((plugin) => look(network, plugin, pluginPath));
  return {
    file: path,
    name,
    cniVersion,
    plugins: network.plugins.map(({ type, config }) => ipamOf(config) ? `${type}+${ipamOf(config)}` : type),
    pools: looked.flatMap(({ pools }) => pools),
    problems: [...hidden, ...looked.flatMap(({ problems }) => problems)],
  };
}

/** Plugins of another make are not started for a list: it is enough that they are there. */
function look(network: Network, plugin: NetworkPlugin, path: string): Pick<NetworkSummary, "pools" | "problems"> {
  const problems: string[] = [];
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      const text = errorText(error);
      if (!problems.includes(text)) problems.push(text);
      return undefined;
    }
  };
  const found = attempt(() => findPlugin(plugin.type, path));
  const written = asWritten(pluginConfig(network, plugin, {}));
  const ipamType = ipamOf(plugin.config);
  const ipam = ipamType === "" ? undefined : attempt(() => findPlugin(ipamType, path));
  if (found !== undefined && "own" in found) {
    const parameters = { containerId: "", netnsPath: "", ifName: "", cniArgs: "", path, ...written };
    attempt(() => openSession({ inEveryVersion: true }).runVerb(found.own, { ...parameters, command: "STATUS" }));
  }
  return { pools: ipam !== undefined && "own" in ipam ? poolsOf(plugin.type, written.document) : [], problems };
}

function ipamOf(config: Readonly<Record<string, unknown>>): string {
  const ipam = field(config, "ipam"), type = isObject(ipam) ? field(ipam, "type") : undefined;
  return typeof type === "string" ? type : "";
}
