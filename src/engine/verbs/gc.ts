/**
 * GC (CNI spec 1.1.0, "GC: Clean up any stale resources"): DEL for every ledger of the network whose attachment is not
 * in the valid list, then what the plugin can find without a ledger, then the same for its IPAM delegate. All are
 * tried; the failures are reported together.
 */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import { field, isObject } from "../../cni/json.ts";
import { VALID_ATTACHMENTS, validAttachmentsIn } from "../../cni/valid-attachments.ts";
import { passOn } from "../delegation/delegate.ts";
import { listLedgers, removeEmptyLedgers, removeLedger, removing } from "../ledger/ledger.ts";
import type { VerbCall } from "../verb-call.ts";
import { joined, removeRecorded, withDelHost } from "./del.ts";

export function runGc({ plugin, invocation, document, session }: VerbCall): undefined {
  const conf = plugin.validate(document);
  const valid = validAttachments(document);
  // Without a list nothing is known to be stale. The plugins we pass this on to decide for themselves.
  if (valid === undefined) return void passOn(plugin, conf, invocation, session);
  const isValid = ({ containerId, ifName }: { containerId: string; ifName?: string }) =>
    valid.has(ifName === undefined ? containerId : `${containerId}/${ifName}`);
  const failures: unknown[] = [];
  const attempt = (work: () => void) => {
    try {
      work();
    } catch (error) {
      failures.push(error);
    }
  };
  for (const record of listLedgers(conf.name, plugin.name)) {
    const { header } = record;
    if (isValid(header)) continue;
    attempt(() => {
      const stale = { ...invocation, ...header, command: "DEL" as const };
      withDelHost(session, stale, true, (host) =>
        removing(record, () => {
          const left = removeRecorded(record, stale, host);
          if (left.length > 0) throw joined(left);
          removeLedger(header, plugin.name);
        }));
    });
  }
  attempt(() => removeEmptyLedgers(conf.name));
  session.withHost({ ...invocation, netnsPath: "" }, true, (host) => {
    attempt(() => plugin.gc?.(conf, isValid, host));
  });
  attempt(() => passOn(plugin, conf, invocation, session));
  if (failures.length > 0) throw joined(failures);
}

/**
 * `id/interface` of each, and its `id` alone. `null` is how Go writes an empty list. Undefined without the key: libcni
 * leaves it out when its caller named no attachments, as `cnitool gc` does (docs/quirks.md, "Running plugins").
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
