/** `patchbay hook del`: detaches a container from all networks that records name, or from some of them. */
import { throwJoined } from "../../contract/failures.ts";
import { removeEmptyLedgersOfContainer } from "../../engine/ledger/ledger.ts";
import { deleteAllRecorded, type Deletion, deletionOf } from "../../runtime/container-networks.ts";
import { loadNetwork } from "../../runtime/conf/load.ts";
import { withContainerLocked } from "../../runtime/lock.ts";
import type { AttachmentRequest, Runtime } from "../../runtime/plugin-call.ts";
import { attachmentsOfContainer } from "../../runtime/records.ts";
import type { RequestedNetwork } from "./request.ts";

interface Selection {
  /** The networks to detach from; undefined for all. */
  readonly only: readonly RequestedNetwork[] | undefined;
  /**
   * The networks of the annotations. A foreign plugin that was killed in ADD leaves no record, so DEL of these networks is
   * called as well.
   */
  readonly annotated: readonly RequestedNetwork[];
}

export function detachAll(
  runtime: Runtime,
  containerId: string,
  { only, annotated }: Selection,
): void {
  withContainerLocked(runtime, containerId, () => {
    const all = attachmentsOfContainer(runtime, containerId);
    const chosen = only === undefined ? all : all.filter((one) => only.some((requested) => isMeant(requested, one)));
    const unrecorded = (only ?? annotated).filter((requested) => !all.some((one) => isMeant(requested, one)));
    const deletions = chosen.map((one) => deletionOf(runtime, one, () => asConfigured(runtime, one)));
    for (const { network, ifName } of unrecorded) {
      const request = { containerId, netnsPath: "", ifName, cniArgs: [], capabilityArgs: {} };
      try {
        deletions.push(asConfigured(runtime, { network, ...request }));
      } catch (error) {
        // The network is neither recorded nor configured.
        if (only !== undefined) throw error;
      }
    }
    throwJoined(deleteAllRecorded(runtime, deletions), "\n");
    if (only === undefined) removeEmptyLedgersOfContainer(containerId);
  });
}

function isMeant(requested: RequestedNetwork, { network, ifName }: { network: string; ifName: string }): boolean {
  return requested.network === network && (!requested.isNamed || requested.ifName === ifName);
}

/** The attachment with the network as it is configured now. */
export function asConfigured(
  runtime: Runtime,
  attachment: AttachmentRequest & { readonly network: string },
): Deletion {
  return { network: loadNetwork(runtime.configDirectory, attachment.network), request: attachment };
}
