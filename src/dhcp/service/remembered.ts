/** Leases of an earlier boot, whose containers are gone: who comes with the same client id is given the address again. */
import type { Owner } from "../../contract/owner.ts";
import type { LeaseRecord } from "../journal/record.ts";
import { nameOf } from "../order.ts";

export class Remembered {
  private readonly records = new Map<string, LeaseRecord>();

  get size(): number {
    return this.records.size;
  }

  all(): Iterable<LeaseRecord> {
    return this.records.values();
  }

  add(record: LeaseRecord): void {
    this.records.set(keyOf(record, record.wishes.clientId), record);
  }

  of(owner: Owner, clientId: string | undefined): LeaseRecord | undefined {
    return this.records.get(keyOf(owner, clientId));
  }

  /** That client has a lease again. */
  take(owner: Owner, clientId: string | undefined): LeaseRecord | undefined {
    const record = this.of(owner, clientId);
    this.records.delete(keyOf(owner, clientId));
    return record;
  }

  takeNamed(name: string): LeaseRecord[] {
    const found = [...this.records.values()].filter((record) => nameOf(record) === name);
    for (const record of found) this.take(record, record.wishes.clientId);
    return found;
  }
}

function keyOf({ network, containerId, ifName }: Owner, clientId: string | undefined): string {
  return clientId === undefined ? nameOf({ network, containerId, ifName }) : `${network}\0${clientId}`;
}
