/**
 * What killed calls have left of containers that are gone: their names, ports, files and ledgers. podman removes a
 * container although its teardown was killed, and never asks again, so the next setup of any container looks.
 */
import { isNamespaceGone } from "../../engine/operator/inspect.ts";
import { someLedgers } from "../../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../../engine/ledger/record.ts";
import { openHost } from "../../engine/open-host.ts";
import { removeStale } from "../../engine/verbs/gc.ts";
import type { Host } from "../../contract/host.ts";
import netavarkBridge from "../../plugins/podman/netavark-bridge/netavark-bridge.ts";
import { hasHostEnd, type VethSpec } from "../../resources/link/veth.ts";
import { failureText } from "../../resources/netavark/shared/failure.ts";
import { log } from "../../resources/netavark/shared/log.ts";
import { inSession } from "../../runtime/plugin-call.ts";

const MODULE = "netavark::commands::setup";
/** So many attachments are looked at, others each time, so that setup takes no longer with more containers. */
const MOST_LOOKS = 50;

/** Only networks with the driver `bridge` leave something on the host. Never fails: the setup of another container must not. */
export function removeWhatIsGone(): void {
  for (const record of goneOnes()) {
    const { network, containerId, ifName } = record.header;
    try {
      inSession((session) => removeStale(record, { path: "" }, session));
      log("info", MODULE, `removed ${ifName} of container ${containerId} from ${network}: its namespace is gone`);
    } catch (error) {
      log("warn", MODULE, `${ifName} of container ${containerId}, which is gone, stays: ${failureText(error)}`);
    }
  }
}

function goneOnes(): LedgerRecord[] {
  const ledgers = someLedgers(netavarkBridge.name, MOST_LOOKS), host = openHost("");
  try {
    return ledgers.filter((record) => isGone(record, host));
  } finally {
    host.close();
  }
}

/**
 * The kernel removes the host's end of the pair with the namespace. So a namespace whose path cannot be followed from
 * here, because it is in another mount or process namespace, is not taken for gone while its container lives.
 */
function isGone(record: LedgerRecord, host: Pick<Host, "route">): boolean {
  const { header, entries } = record;
  if (entries.some(({ kind, spec }) => kind === "veth" && hasHostEnd(spec as VethSpec, host))) return false;
  return isNamespaceGone({ ...header, ledgers: [record] });
}
