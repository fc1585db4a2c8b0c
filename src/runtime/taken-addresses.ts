/** Addresses that every container of a network gets, and that one has already. */
import { isNamespaceGone } from "../engine/operator/inspect.ts";
import { gistOf, type KnownAttachment } from "../engine/operator/known-attachment.ts";
import { HostView } from "../engine/ledger/whereabouts.ts";

/** One line for each. */
export function takenAddresses(fixed: readonly string[], attachments: readonly KnownAttachment[]): string[] {
  const view = new HostView();
  return fixed.flatMap((address) => {
    const holder = attachments.find((one) => gistOf(one).addresses.includes(address) && !isNamespaceGone(one, view));
    if (holder === undefined) return [];
    const { containerId, ifName } = holder;
    return [
      `${address} is the address of ${ifName} of container ${containerId}; every container of the network gets it`,
    ];
  });
}
