/** Where networks, results and namespaces are by convention. */
import { variable } from "../ffi/environment.ts";
import { exists } from "../ffi/files.ts";

export const DEFAULT_CONFIG_DIRECTORY = "/etc/cni/net.d";
export const DEFAULT_CACHE_DIRECTORY = "/var/lib/cni";
/** Where `ip netns` keeps namespaces. */
export const NETNS_DIRECTORY = "/run/netns";

/** What the caller's environment says; cnitool reads the same variable. */
export function configDirectoryOfCaller(): string {
  return variable("NETCONFPATH") || DEFAULT_CONFIG_DIRECTORY;
}

/** The usual one may be missing, where nothing is configured yet. */
export function isNamedButMissing(configDirectory: string): boolean {
  return configDirectory !== DEFAULT_CONFIG_DIRECTORY && !exists(configDirectory);
}
