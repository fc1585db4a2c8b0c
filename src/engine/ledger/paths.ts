/** The paths of ledgers: a directory for each network, a file for each attachment and plugin. */
import type { Owner } from "../../contract/owner.ts";
import { stateDirectory } from "../state-directory.ts";

const LONG_NAME_PREFIX = 100;

/** Shortens a name that is too long for a file name: its beginning and a hash. */
function fileName(text: string): string {
  if (text.length <= 200) return text;
  return `${text.slice(0, LONG_NAME_PREFIX)}~${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`;
}

/** The resident's socket, which is in the state directory, too. Names of networks have no "~". */
const TAKEN = "serve.sock";

export function networkDirectory(network: string): string {
  return `${stateDirectory()}/${network === TAKEN ? `${TAKEN}~` : fileName(network)}`;
}

// Network names and container ids contain no "@", so the parts stay distinct.
export function ledgerPath({ network, containerId, ifName }: Owner, plugin: string): string {
  return `${networkDirectory(network)}/${fileName(`${containerId}@${ifName}@${plugin}`)}`;
}

/** The beginning of the file names of the ledgers of one interface of one container. */
export function startOfName({ containerId, ifName }: Omit<Owner, "network">): string {
  return `${containerId}@${ifName}@`.slice(0, LONG_NAME_PREFIX);
}
