/** `patchbay hook del`: detaches a container from all networks that records name, or from some of them. */
import { throwJoined } from "../../contract/failures.ts";
import { removeEmptyLedgersOfContainer } from "../../engine/ledger/ledger.ts";
import { LeftToCaller } from "../../ffi/calls.ts";
import { deleteAllRecorded, type Deletion, deletionOf } from "../container.ts";
import { networkNamed } from "../conf/load.ts";
import { withContainerLocked } from "../lock.ts";
import type { AttachmentRequest, Runtime } from "../plugin-call.ts";
import { attachmentsOf } from "../records.ts";
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
  containerId: string,
  { only, wanted }: Selection,
): void {
  withContainerLocked(runtime.cacheDirectory, containerId, () => {
    const all = attachmentsOf(runtime, containerId);
    const chosen = only === undefined ? all : all.filter((one) => only.some((wish) => isMeant(wish, one)));
    const unrecorded = (only ?? wanted).filter((wish) => !all.some((one) => isMeant(wish, one)));
    const deletions = chosen.map((one) => deletionOf(runtime, one, () => today(runtime, one)));
    for (const { network, ifName } of unrecorded) {
      const request = { containerId, netnsPath: "", ifName, cniArgs: [], capabilityArgs: {} };
      try {
        deletions.push(today(runtime, { network, ...request }));
      } catch (error) {
        // The network is neither recorded nor configured.
        if (error instanceof LeftToCaller || only !== undefined) throw error;
      }
    }
    throwJoined(deleteAllRecorded(runtime, deletions), "\n");
    if (only === undefined) removeEmptyLedgersOfContainer(containerId);
  });
}

function isMeant(wish: WantedNetwork, { network, ifName }: { network: string; ifName: string }): boolean {
  return wish.network === network && (!wish.isNamed || wish.ifName === ifName);
}

/** The attachment with the network as it is configured now. */
export function today(runtime: Runtime, attachment: AttachmentRequest & { readonly network: string }): Deletion {
  return { network: networkNamed(runtime, attachment.network), request: attachment };
}
