/** The CNI network that a podman network stands for. */
import { errorText } from "../../cni/error.ts";
import { LeftToCaller } from "../../ffi/calls.ts";
import { mayWrite } from "../../ffi/access.ts";
import { variable } from "../../ffi/environment.ts";
import { exists } from "../../ffi/files.ts";
import { DEFAULT_CACHE_DIRECTORY } from "../../runtime/cache.ts";
import { configDirectoryOf } from "../../runtime/cli/network-arguments.ts";
import { networkNames } from "../../runtime/conf/directory.ts";
import { loadNetwork } from "../../runtime/conf/load.ts";
import { type Network, parseNetwork } from "../../runtime/conf/network.ts";
import { examined } from "../../runtime/examination.ts";
import type { Runtime } from "../../runtime/plugin-call.ts";
import type { Network as PodmanNetwork } from "../wire/netavark.schema.ts";
import { type Addressing, addressingOf } from "./addressing.ts";
import { optionChain, type PluginConf, type Wanted } from "./option-chain.ts";
import { type Options, readOptions, refused } from "./options.ts";

export interface Chosen {
  readonly network: Network;
  readonly options: Options;
  /** Of a network without a file. */
  readonly chain?: readonly PluginConf[];
  readonly addressing?: Addressing;
}

/** What Go's plugins of today know. */
const VERSION = "1.0.0";

export function chosenNetwork(podman: PodmanNetwork, wanted: Wanted = { addresses: [], mac: undefined }): Chosen {
  const options = readOptions(podman.options), runtime = runtimeFor(podman);
  if (options.conflist !== undefined) {
    return { network: examined(named(options.conflist), runtime), options };
  }
  if (options.plugins.length === 0) throw nothingChosen();
  const addressing = addressingOf(podman, options);
  const chain = optionChain(podman, options, addressing, runtime.pluginPath, wanted);
  const list = { cniVersion: VERSION, name: podman.name, plugins: chain };
  return { network: examined(parseNetwork(JSON.stringify(list)), runtime), options, chain, addressing };
}

/** The same without its configuration: for clean-up, when that cannot be read. */
export function cniName({ name, options }: PodmanNetwork): string {
  return options?.["conflist"] ?? name;
}

export function runtimeFor({ options }: PodmanNetwork): Runtime {
  const hasUsual = mayWrite(nearest(DEFAULT_CACHE_DIRECTORY));
  return {
    pluginPath: options?.["pluginPath"] ?? variable("CNI_PATH") ?? "",
    // For podman without root, /run alone is its own, as long as it has containers.
    cacheDirectory: hasUsual ? DEFAULT_CACHE_DIRECTORY : "/run/cni",
  };
}

/** The path itself, or what it is to be made in. */
function nearest(path: string): string {
  return exists(path) ? path : nearest(path.slice(0, path.lastIndexOf("/")) || "/");
}

function named(name: string): Network {
  try {
    return loadNetwork(configDirectoryOf(undefined), name);
  } catch (error) {
    if (error instanceof LeftToCaller) throw error;
    throw refused("conflist", name, errorText(error));
  }
}

function nothingChosen(): Error {
  const directory = configDirectoryOf(undefined), names = networkNames(directory);
  const there = names.length === 0 ? `${directory} has none` : `${directory} has ${names.join(", ")}`;
  return new Error(
    `no CNI network is named: use --opt conflist=NAME (${there}), or --opt plugins=bridge,… for one without a file`,
  );
}
