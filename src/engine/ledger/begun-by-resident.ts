/** Ledgers of calls that a resident began and did not end. */
import { isHandedOver, ownProcessId } from "../../process/calls.ts";
import type { LedgerRecord } from "./record.ts";

/** This process handed the very call over to a resident, which died before it answered: nobody knows of what it made. */
export function wasBegunByResident({ header }: LedgerRecord): boolean {
  return !isHandedOver() && header.caller !== undefined && header.caller === ownProcessId();
}
