/**
 * GC (CNI spec 1.1.0, "GC: Clean up any stale resources"): removes the resources in the ledgers of invalid attachments,
 * then what the plugin finds without a ledger, then calls GC of the delegates. It tries everything and reports all
 * failures together.
 */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import { field, isObject } from "../../cni/json.ts";
import { VALID_ATTACHMENTS, validAttachmentsIn } from "../../cni/valid-attachments.ts";
import type { Invocation } from "../../cni/invocation.ts";
import { attemptAll, throwJoined } from "../../contract/failures.ts";
import { withOwnPatience } from "../../process/patience.ts";
import { loadKind } from "../../resources/table.ts";
import { listLedgers, removeEmptyLedgers, removeLedger, removing } from "../ledger/ledger.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Session } from "../session.ts";
import type { VerbCall } from "../verb-call.ts";
import { removeRecorded, withDelHost } from "./del.ts";

export function runGc({ plugin, invocation, document, session }: VerbCall): undefined {
  const conf = plugin.validate(document);
  const valid = validAttachments(document);
  // Without a list nothing is known to be stale. Some delegates take that for an empty list (Go's host-local).
  if (valid === undefined) return;
  const isValid = ({ containerId, ifName }: { containerId: string; ifName?: string }) =>
    valid.has(ifName === undefined ? containerId : `${containerId}/${ifName}`);
  const stale = listLedgers(conf.name, plugin.name).filter(({ header }) => !isValid(header));
  attemptAll([
    ...stale.map((record) => () => withOwnPatience(() => removeStale(record, invocation, session))),
    () => removeEmptyLedgers(conf.name),
    () =>
      session.withHost({ ...invocation, netnsPath: "" }, true, (host) => {
        const sweeps = (plugin.sweeps ?? []).map((kind) => () => loadKind(kind)!.sweep!(conf.name, isValid, host));
        attemptAll([...sweeps, () => plugin.gc?.(conf, isValid, host)]);
      }),
    () => session.passOn(plugin, conf, invocation),
  ]);
}

/** Goes by the ledger alone: what the configuration would name may be another attachment's by now. */
export function removeStale(
  record: LedgerRecord,
  { path, allowOwnNetns }: Pick<Invocation, "path" | "allowOwnNetns">,
  session: Session,
): void {
  const { header } = record, stale = { path, allowOwnNetns, ...header, command: "DEL" as const };
  withDelHost(session, stale, true, (host) =>
    removing(record, () => {
      throwJoined(removeRecorded(record, stale, host));
      removeLedger(header, header.plugin);
    }, session.options.gone));
}

/**
 * `id/interface` and `id` of each valid attachment. Go writes an empty list as `null`. Undefined without the key:
 * libcni omits it when its caller names no attachments, as `cnitool gc` does (docs/quirks/runtime.md,
 * "gc-without-a-list").
 */
function validAttachments(document: Record<string, unknown>): Set<string> | undefined {
  const list = validAttachmentsIn(document);
  if (list === undefined) return undefined;
  if (list !== null && !Array.isArray(list)) {
    throw new CniError(INVALID_CONFIG, `"${VALID_ATTACHMENTS}" must be an array, got ${JSON.stringify(list)}`);
  }
  return new Set((list ?? []).flatMap((entry: unknown) => {
    const containerId = isObject(entry) && field(entry, "containerID");
    const ifName = isObject(entry) && field(entry, "ifname");
    if (typeof containerId === "string" && typeof ifName === "string") {
      return [containerId, `${containerId}/${ifName}`];
    }
    throw new CniError(
      INVALID_CONFIG,
      `"${VALID_ATTACHMENTS}" must hold objects with containerID and ifname, got ${JSON.stringify(entry)}`,
    );
  }));
}
