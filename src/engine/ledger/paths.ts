/** Where ledgers are: a directory a network, a file an attachment and plugin. */
import type { Owner } from "../../contract/owner.ts";
import { stateDirectory } from "../state-directory.ts";

const KEPT_OF_LONG_NAMES = 100;

/** Names longer than a file name may be are kept by their hash. */
function fileName(text: string): string {
  if (text.length <= 200) return text;
  return `${text.slice(0, KEPT_OF_LONG_NAMES)}~${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`;
}

export function networkDirectory(network: string): string {
  return `${stateDirectory()}/${fileName(network)}`;
}

// "@" occurs in no network name and in no container id, so the parts cannot run into one another.
export function ledgerPath({ network, containerId, ifName }: Owner, plugin: string): string {
  return `${networkDirectory(network)}/${fileName(`${containerId}@${ifName}@${plugin}`)}`;
}

/** How the names of the ledgers of one interface of one container begin. */
export function startOfName({ containerId, ifName }: Omit<Owner, "network">): string {
  return `${containerId}@${ifName}@`.slice(0, KEPT_OF_LONG_NAMES);
}
