/** Leases of an earlier boot, whose containers are gone: a client with the same id is given the address again. */
import { errorText } from "../../../cni/error.ts";
import type { Owner } from "../../../contract/owner.ts";
import type { Journal } from "../journal/journal.ts";
import type { LeaseRecord } from "../journal/record.ts";
import { ownerName } from "../service-protocol.ts";
import { say } from "./log.ts";

export class FormerLeases {
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

  /** Forgets the record of a client that has a lease again. */
  take(owner: Owner, clientId: string | undefined): LeaseRecord | undefined {
    const record = this.of(owner, clientId);
    this.records.delete(keyOf(owner, clientId));
    return record;
  }

  takeNamed(name: string): LeaseRecord[] {
    const found = [...this.records.values()].filter((record) => ownerName(record) === name);
    for (const record of found) this.take(record, record.wishes.clientId);
    return found;
  }
}

const MOST_RELEASED = 1000;

/**
 * Addresses that clients have released. Who comes again asks for its own: podman stops and starts a container with the
 * same id and another hardware address, by which servers such as dnsmasq choose. The service that podman's units start
 * ends while nobody has a lease, so the addresses stand in the journal when a service ends.
 */
export class ReleasedAddresses {
  private readonly addresses = new Map<string, Uint8Array>();

  /** Reads the addresses that an earlier service has kept. A damaged line is passed over. */
  constructor(private readonly journal: Pick<Journal, "releasedAddresses" | "keepReleasedAddresses">) {
    for (const line of journal.releasedAddresses().split("\n").slice(-MOST_RELEASED - 1)) {
      const [, key, hex] = /^(".*") ([0-9a-f]{8})$/.exec(line) ?? [];
      try {
        if (key !== undefined) this.addresses.set(String(JSON.parse(key)), Uint8Array.fromHex(hex!));
      } catch {
        // The key is no JSON.
      }
    }
  }

  /** Keeps the addresses for the next service. */
  keep(): void {
    const lines = [...this.addresses].map(([key, address]) => `${JSON.stringify(key)} ${address.toHex()}\n`);
    try {
      this.journal.keepReleasedAddresses(lines.join(""));
    } catch (error) {
      say(`addresses that were given back are forgotten: ${errorText(error)}`);
    }
  }

  add(owner: Owner, clientId: string | undefined, address: Uint8Array): void {
    const key = keyOf(owner, clientId);
    this.addresses.delete(key);
    this.addresses.set(key, address);
    if (this.addresses.size > MOST_RELEASED) this.addresses.delete(this.addresses.keys().next().value!);
  }

  of(owner: Owner, clientId: string | undefined): Uint8Array | undefined {
    return this.addresses.get(keyOf(owner, clientId));
  }
}

function keyOf({ network, containerId, ifName }: Owner, clientId: string | undefined): string {
  return clientId === undefined ? ownerName({ network, containerId, ifName }) : `${network}\0${clientId}`;
}
