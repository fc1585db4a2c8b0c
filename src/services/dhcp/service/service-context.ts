/** The service, as its attachments see it. */
import type { Journal } from "../journal/journal.ts";
import type { Clock } from "../journal/record.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { Lease6 } from "../v6/lease/lease.ts";
import type { LeaseOptions } from "../lease-options.ts";

export interface ServiceContext {
  journal: Journal;
  bootId: string;
  /** Waits between messages while somebody waits, unless the usual ones are good. */
  pauses: readonly number[] | undefined;
  broadcasts: boolean;
  clock(): Clock;
  /** The attachment has a lease, new or renewed. */
  obtained(attachment: { owner: Owner; options: LeaseOptions }): void;
  /** Nobody waits any more, and there is no lease. */
  failed(network: string, obstacle: string): void;
}

/** What a client of the same name had: on another link, in another namespace, or before a reboot. */
export interface FormerLease {
  address?: Uint8Array;
  /** The address may still be ours. */
  isOurs: boolean;
  lease6?: Lease6;
}
