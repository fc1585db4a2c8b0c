/** The paths of ledgers: a directory for each network, a file for each attachment and plugin. */
import { fileName, LONG_NAME_PREFIX } from "../../contract/file-name.ts";
import type { Owner } from "../../contract/owner.ts";
import { stateDirectory } from "../../process/state-directory.ts";

/** The resident's socket, which is in the state directory, too. Names of networks have no "~". */
const TAKEN = "serve.sock";

export function networkDirectory(network: string): string {
  return `${stateDirectory()}/${network === TAKEN ? `${TAKEN}~` : fileName(network)}`;
}

// Network names and container ids contain no "@", so the parts stay distinct.
export function ledgerPath({ network, containerId, ifName }: Owner, plugin: string): string {
  return `${networkDirectory(network)}/${fileName(`${containerId}@${ifName}@${plugin}`)}`;
}

/** The beginning of the file names of the ledgers of one container, or of one interface of it. */
export function startOfName({ containerId, ifName }: { containerId: string; ifName?: string }): string {
  return `${containerId}@${ifName === undefined ? "" : `${ifName}@`}`.slice(0, LONG_NAME_PREFIX);
}

/** Whether a file in a network's directory is a ledger by its name. In a long name, the hash may stand for the "@". */
export function isLedgerName(name: string): boolean {
  return /@|~[0-9a-f]{64}$/.test(name);
}
