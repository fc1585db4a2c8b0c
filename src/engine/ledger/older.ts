/**
 * What an older build announced, as this one would (`asToday` in contract/plugin.ts). An attachment lacks what has been added
 * since, until repair makes it. DEL does not have to know whether it did.
 */
import { loadRecorded } from "../../plugins/table.ts";
import type { Announced } from "../../contract/plugin.ts";
import type { Host } from "../../contract/host.ts";
import type { LedgerAdd } from "./record.ts";

export interface AnnouncedToday extends Announced {
  /** The ledger has another entry in its place, or none. */
  isAdded: boolean;
}

/** Stands after what is missing. */
export const OF_OLDER_BUILD =
  "an older build made the attachment without that: 'patchbay repair' makes it, and so does the container's next ADD";

export function announcedToday({ header, entries }: LedgerAdd, host: Host): AnnouncedToday[] {
  const today = loadRecorded(header.plugin)?.asToday?.(entries, header, host) ?? entries;
  return today.map(({ kind, spec }) => ({ kind, spec, isAdded: !entries.some((entry) => entry.spec === spec) }));
}
