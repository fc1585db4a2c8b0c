/** What this host has in a cluster when its agent is uninstalled, by the agent's own files: the store is not asked. */
import { errorText } from "../../cni/error.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { NodeFiles } from "./files.ts";
import { DATA_DIRECTORY } from "./paths.ts";
import { readClusterConf } from "./run.ts";
import { thisNode } from "./self.ts";

/** A line for the person. Only root's agent claims, and only root may read what it keeps. */
export function blocksThatStay(): string | undefined {
  if (process.geteuid!() !== 0) return undefined;
  let count: number, node: string;
  try {
    count = new NodeFiles(DATA_DIRECTORY, stateDirectory()).readHeld().grants.length;
    if (count === 0) return undefined;
    ({ node } = thisNode(readClusterConf(undefined).node));
  } catch (error) {
    return `what this host has in a cluster of addresses is not known: ${errorText(error)}`;
  }
  return `this host, node ${node} of a cluster, has ${
    count === 1 ? "1 block" : `${count} blocks`
  } of addresses, which stay its own; if it ` +
    `leaves the cluster: 'patchbay node drain ${node}' first, or afterwards 'patchbay node remove ${node} --it-is-off' ` +
    "on another host";
}
