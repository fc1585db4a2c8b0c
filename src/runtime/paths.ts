/** Where networks, results and namespaces are by convention, and the paths that people and programs give. */
import { variable } from "../ffi/environment.ts";

export const DEFAULT_CONFIG_DIRECTORY = "/etc/cni/net.d";
export const DEFAULT_CACHE_DIRECTORY = "/var/lib/cni";
/** Where `ip netns` keeps namespaces. */
export const NETNS_DIRECTORY = "/run/netns";

/** What the caller's environment says; cnitool reads the same variable. */
export function configDirectoryOfCaller(): string {
  return variable("NETCONFPATH") || DEFAULT_CONFIG_DIRECTORY;
}

/** Does not follow links, like Go's filepath.Abs. */
export function absolutePath(path: string): string {
  const parts: string[] = [];
  for (const part of `${path.startsWith("/") ? "" : process.cwd()}/${path}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
