/** The CNI network that a podman network stands for. */
import { errorText } from "../../cni/error.ts";
import { mayWrite } from "../../ffi/access.ts";
import { variable } from "../../ffi/environment.ts";
import { exists } from "../../ffi/files.ts";
import { networkNames } from "../../runtime/conf/directory.ts";
import type { Network } from "../../runtime/conf/network.ts";
import { loadNetwork } from "../../runtime/conf/load.ts";
import { configDirectoryOfCaller, DEFAULT_CACHE_DIRECTORY } from "../../runtime/paths.ts";
import type { Runtime } from "../../runtime/plugin-call.ts";
import type { PodmanNetwork } from "../../interop/podman-documents/netavark.schema.ts";
import { type DriverOptions, readDriverOptions, refused } from "./options.ts";

export interface Chosen {
  readonly network: Network;
  readonly options: DriverOptions;
}

export function chosenNetwork(podman: PodmanNetwork, runtime: Runtime): Chosen {
  const options = podman.options?.["conflist"] === undefined ? undefined : readDriverOptions(podman.options);
  if (options?.conflist === undefined) throw nothingChosen(podman);
  return { network: named(options.conflist, runtime), options };
}

/** The name of that network, which needs no configuration: for clean-up. */
export function cniName({ name, options }: PodmanNetwork): string {
  return options?.["conflist"] ?? name;
}

export function runtimeFor({ options }: PodmanNetwork): Runtime {
  const hasUsual = mayWrite(nearest(DEFAULT_CACHE_DIRECTORY));
  return {
    configDirectory: configDirectoryOfCaller(),
    pluginPath: options?.["pluginPath"] ?? variable("CNI_PATH") ?? "",
    // Rootless podman has only a /run of its own, as long as it has containers.
    cacheDirectory: hasUsual ? DEFAULT_CACHE_DIRECTORY : "/run/cni",
  };
}

/** The path, or the nearest directory above it that exists. */
function nearest(path: string): string {
  return exists(path) ? path : nearest(path.slice(0, path.lastIndexOf("/")) || "/");
}

function named(name: string, runtime: Runtime): Network {
  try {
    return loadNetwork(runtime.configDirectory, name);
  } catch (error) {
    throw refused("conflist", name, errorText(error));
  }
}

function nothingChosen(podman: PodmanNetwork): Error {
  const directory = configDirectoryOfCaller(), names = networkNames(directory);
  const there = names.length === 0 ? `${directory} has none` : `${directory} has ${names.join(", ")}`;
  const { exampleConflist } = require("./example-conflist.ts") as typeof import("./example-conflist.ts");
  return new Error(
    `${misspelt(podman)}no CNI network is named: use --opt conflist=NAME (${there}). ` +
      `For a new one, write ${directory}/${podman.name}.conflist, such as ${exampleConflist(podman, directory)}`,
  );
}

/** What stands in the place of the option that is missing. */
function misspelt({ options }: PodmanNetwork): string {
  try {
    readDriverOptions(options);
    return "";
  } catch (error) {
    return `${errorText(error)}; `;
  }
}
