/**
 * The way in from the Go host-local plugin, and the way back. The leases are files in its format all the while: what
 * changes is whether there is an index beside them, and whether it knows of all.
 */
import { namesIn, removeEmptyDirectory, removeFile } from "../ffi/files.ts";
import { formatAddress } from "../net/address.ts";
import { endEarlierBoot, remakeBlocks, removeEmpty } from "./blocks.ts";
import { leasedAddresses, type LeaseOwner, ownerOf, readLease } from "./go-directory.ts";
import { alone, indexDirectory, inStore, type Store, type StoreOptions } from "./store.ts";

export interface LeaseFile {
  address: string;
  /** Undefined when the file is not one that ADD makes. */
  owner: LeaseOwner | undefined;
}

/** What the lease files say. Changes nothing. */
export function listLeases(directory: string): LeaseFile[] {
  const leases: LeaseFile[] = [];
  for (const address of leasedAddresses(directory)) {
    const text = readLease(directory, address);
    if (text !== undefined) leases.push({ address: formatAddress(address), owner: ownerOf(text) });
  }
  return leases;
}

/** Brings the index in line with the files, and removes empty ones; the first ADD or DEL does as much for its range. */
export function importLeases(options: StoreOptions): void {
  inStore(options, undefined, (store) =>
    alone(store, () => {
      removeEmptyFiles(store);
      remakeBlocks(store);
    }));
}

/** Leaves the directory as Go's plugin would: leases that are none are removed, and then the index. */
export function exportLeases(options: StoreOptions): void {
  const index = indexDirectory(options.directory);
  inStore(options, undefined, (store) =>
    alone(store, () => {
      endEarlierBoot(store);
      removeEmptyFiles(store);
      for (const name of namesIn(index)) removeFile(`${index}/${name}`);
    }));
  removeEmptyDirectory(index);
}

function removeEmptyFiles(store: Store): void {
  for (const address of leasedAddresses(store.directory)) {
    if (readLease(store.directory, address) === "") removeEmpty(store, address);
  }
}
