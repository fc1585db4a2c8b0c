/** Finding a network by its name, by the rules of the reference library. */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import type { Network } from "./network.ts";
import { networkPaths, readNetwork } from "./network-file.ts";

/** Lists come before single plugins. A file that cannot be read ends the lookup. */
export function loadNetwork(directory: string, name: string): Network {
  const paths = networkPaths(directory);
  for (const path of paths) {
    const network = readOrExplain(path, name);
    if (network?.name === name) return { ...network, path };
  }
  const message = paths.length === 0
    ? `no net configurations found in ${directory}`
    : `no net configuration with name "${name}" in ${directory}`;
  const nextStep = paths.length === 0 ? "--config-dir or $NETCONFPATH names another directory" : undefined;
  throw new UnknownNetworkError(INVALID_CONFIG, message, explanations().knownNetworksHint(directory, name), {
    nextStep,
  });
}

/** For clean-up: `recorded` supplies a network that is no longer configured. */
export function loadedOrRecorded(
  load: () => Network,
  recorded: () => Network | undefined,
): { network: Network; isConfigured: boolean } {
  try {
    return { network: load(), isConfigured: true };
  } catch (error) {
    const network = error instanceof UnknownNetworkError ? recorded() : undefined;
    if (network === undefined) throw error;
    return { network, isConfigured: false };
  }
}

/** No file has a network of the name. */
export class UnknownNetworkError extends CniError {}

function readOrExplain(path: string, name: string): Network | undefined {
  try {
    return readNetwork(path);
  } catch (error) {
    throw explanations().lookupError(path, error, name);
  }
}

/** Loaded when a lookup fails; every ADD loads the file you are reading. */
function explanations() {
  return require("./directory.ts") as typeof import("./directory.ts");
}
