/**
 * Removes what killed calls have left of containers that have ended: names, ports, files and ledgers. podman removes a
 * container although its teardown was killed, and never asks again, so the next setup of any container looks.
 */
import type { Owner } from "../../../contract/owner.ts";
import { isNamespaceGone } from "../../../engine/operator/inspect.ts";
import { readLedger, removeAllEmptyLedgers, someLedgers } from "../../../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../../../engine/ledger/record.ts";
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import { removeStale } from "../../../engine/verbs/gc.ts";
import netavarkBridge from "../../../plugins/netavark/netavark-bridge/netavark-bridge.ts";
import { failureText } from "../../../resources/netavark/shared/failure.ts";
import { log } from "../../../resources/netavark/shared/log.ts";
import { inSession } from "../../../runtime/plugin-call.ts";

const MODULE = "netavark::commands::setup";
/** The number of attachments that one setup looks at, others each time: setup takes no longer with more containers. */
const MOST_LOOKS = 50;

/**
 * Only the driver `bridge` leaves something on the host. What cannot be removed is no failure of the setup of another
 * container. A worker of a resident leaves the whole call to its caller where the removal may wait for others.
 */
export function removeStaleAttachments(): void {
  const view = new HostView(false);
  try {
    removeAllEmptyLedgers(netavarkBridge.name);
  } catch (error) {
    log("warn", MODULE, `empty ledgers stay: ${failureText(error)}`);
  }
  for (const record of someLedgers(netavarkBridge.name, MOST_LOOKS)) removeIfStale(record, view);
}

/** The attachment of this owner, which is in the way. Returns whether it was removed. */
export function removeStaleAttachment(owner: Owner): boolean {
  const record = readLedger(owner, netavarkBridge.name);
  return record !== undefined && removeIfStale(record, new HostView(false));
}

function removeIfStale(record: LedgerRecord, view: HostView): boolean {
  const { network, containerId, ifName } = record.header;
  try {
    if (!isNamespaceGone({ ...record.header, names: [], ledgers: [record] }, view)) return false;
    const gone = { ...record, header: { ...record.header, netnsPath: "" } };
    inSession((session) => removeStale(gone, { path: "" }, session), { gone: [record] });
    log("info", MODULE, `removed ${ifName} of container ${containerId} from ${network}: its namespace is gone`);
    return true;
  } catch (error) {
    log("warn", MODULE, `${ifName} of container ${containerId}, which is gone, stays: ${failureText(error)}`);
    return false;
  }
}
