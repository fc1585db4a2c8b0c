/** Ledgers of calls that a resident began and did not end. */
import { isHandedOver, ownProcessId } from "../../process/calls.ts";
import type { LedgerRecord } from "./record.ts";

/** A resident does not look for what one before it has begun. */
export function mayBeBegunByResident(): boolean {
  return !isHandedOver();
}

/** This process handed the very call over to a resident, which died before it answered: nobody knows of what it made. */
export function wasBegunByResident({ header }: LedgerRecord): boolean {
  return mayBeBegunByResident() && header.caller !== undefined && header.caller === ownProcessId();
}
