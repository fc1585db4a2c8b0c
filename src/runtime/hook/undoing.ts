/**
 * Undoing what records name. The configuration of ADD counts where it is recorded, because today's may be another one, or
 * gone.
 */
import { errorText } from "../../cni/error.ts";
import { collectFailures } from "../../contract/failures.ts";
import { parseDocument } from "../../cni/json.ts";
import { warn } from "../../ffi/warn.ts";
import { deleteUnlocked } from "../chain.ts";
import { loadNetwork, UnknownNetworkError } from "../conf/load.ts";
import type { Network, NetworkPlugin } from "../conf/network.ts";
import { examined } from "../examination.ts";
import { type AttachmentRequest, type Runtime, wrapped } from "../plugin-call.ts";
import type { RecordedAttachment } from "../recorded-attachments.ts";
import { deleteByLedgers, networkWithoutPlugins, recordedNetwork } from "../recorded-network.ts";

export interface Undoing {
  readonly network: Network;
  readonly request: AttachmentRequest;
}

/** In reverse order: eth10, eth2, lo. Throws when a resident is to leave one of them to its caller. */
export function undoingOf(
  runtime: Runtime,
  configDirectory: string,
  attachments: readonly RecordedAttachment[],
): Undoing[] {
  return attachments.map((attachment) => {
    examined(networkOfLedgers(attachment), runtime);
    return { network: examined(networkOf(runtime, configDirectory, attachment), runtime), request: attachment };
  }).sort((one, other) => other.request.ifName.localeCompare(one.request.ifName, "en", { numeric: true }));
}

/** Goes on past what fails; answers every failure. */
export function undoAll(runtime: Runtime, undoings: readonly Undoing[]): unknown[] {
  return collectFailures(undoings, ({ network, request }) => {
    const { containerId, ifName } = request, key = { network: network.name, containerId, ifName };
    try {
      deleteUnlocked(runtime, network, request);
      deleteByLedgers(runtime, key);
    } catch (error) {
      throw wrapped(`${ifName} of container ${containerId} cannot be detached from network ${network.name}`, error);
    }
  });
}

function networkOf(runtime: Runtime, configDirectory: string, attachment: RecordedAttachment): Network {
  if (attachment.isCached) return recordedNetwork(runtime, attachment) ?? networkWithoutPlugins(attachment.network);
  try {
    return loadNetwork(configDirectory, attachment.network);
  } catch (error) {
    if (!(error instanceof UnknownNetworkError)) {
      warn(`network ${attachment.network} cannot be read, and what is recorded of it is undone: ${errorText(error)}`);
    }
    return networkWithoutPlugins(attachment.network);
  }
}

/** For the examination alone: what `deleteByLedgers` may call. */
function networkOfLedgers({ network, recorded }: RecordedAttachment): Network {
  const plugins = recorded.ledgers.map(({ header }): NetworkPlugin => {
    const config = parseDocument(header.stdin, "ledger") as Record<string, unknown>;
    return { type: header.plugin, name: "", capabilities: {}, config };
  });
  return { ...networkWithoutPlugins(network), plugins };
}
