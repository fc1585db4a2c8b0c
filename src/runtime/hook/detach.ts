/** `patchbay hook del`: everything that is recorded of a container's id, or of some networks of it. */
import { throwJoined } from "../../contract/failures.ts";
import { removeEmptyLedgersOfContainer } from "../../engine/ledger/ledger.ts";
import { loadNetwork } from "../conf/load.ts";
import type { Network } from "../conf/network.ts";
import { examined } from "../examination.ts";
import { withContainerLocked } from "../lock.ts";
import type { Runtime } from "../plugin-call.ts";
import { attachmentsOf } from "../recorded-attachments.ts";
import { undoAll, type Undoing, undoingOf } from "./undoing.ts";
import type { WantedNetwork } from "./wanted.ts";

interface Selection {
  /** The networks to detach from; undefined for all. */
  readonly only: readonly WantedNetwork[] | undefined;
  /**
   * The networks of the annotations. A foreign plugin that was killed in ADD leaves no record, so DEL of these networks is
   * called as well.
   */
  readonly wanted: readonly WantedNetwork[];
}

export function detachAll(
  runtime: Runtime,
  configDirectory: string,
  containerId: string,
  { only, wanted }: Selection,
): void {
  withContainerLocked(runtime.cacheDirectory, containerId, () => {
    const all = attachmentsOf(runtime, containerId);
    const chosen = only === undefined ? all : all.filter((one) => only.some((wish) => isMeant(wish, one)));
    const unrecorded = (only ?? wanted).filter((wish) => !all.some((one) => isMeant(wish, one)));
    const undoings = undoingOf(runtime, configDirectory, chosen);
    for (const wish of unrecorded) {
      const undoing = undoingOfUnrecorded(runtime, configDirectory, containerId, wish, only !== undefined);
      if (undoing !== undefined) undoings.push(undoing);
    }
    throwJoined(undoAll(runtime, undoings), "\n");
    if (only === undefined) removeEmptyLedgersOfContainer(containerId);
  });
}

function isMeant(wish: WantedNetwork, { network, ifName }: { network: string; ifName: string }): boolean {
  return wish.network === network && (!wish.isNamed || wish.ifName === ifName);
}

function undoingOfUnrecorded(
  runtime: Runtime,
  configDirectory: string,
  containerId: string,
  { network, ifName }: WantedNetwork,
  isAskedFor: boolean,
): Undoing | undefined {
  const request = { containerId, netnsPath: "", ifName, cniArgs: [], capabilityArgs: {} };
  let loaded: Network;
  try {
    loaded = loadNetwork(configDirectory, network);
  } catch (error) {
    // Neither recorded nor configured.
    if (isAskedFor) throw error;
    return undefined;
  }
  return { network: examined(loaded, runtime), request };
}
