/** Where networks, results and namespaces are by convention. */
import { variable } from "../ffi/environment.ts";

export const DEFAULT_CONFIG_DIRECTORY = "/etc/cni/net.d";
export const DEFAULT_CACHE_DIRECTORY = "/var/lib/cni";
/** Where `ip netns` keeps namespaces. */
export const NETNS_DIRECTORY = "/run/netns";

/** What the caller's environment says; cnitool reads the same variable. */
export function configDirectoryOfCaller(): string {
  return variable("NETCONFPATH") || DEFAULT_CONFIG_DIRECTORY;
}
