/**
 * Taking over a network from the Go host-local plugin, and giving it back. The lease files are the same for both; only
 * the index beside them is made or removed.
 */
import { exists, namesIn, removeEmptyDirectory, removeFile } from "../ffi/files.ts";
import { formatAddress, parseAddress } from "../net/address.ts";
import { endEarlierBoot, remakeBlocks, removeEmpty } from "./blocks.ts";
import { releaseAddress } from "./claims.ts";
import { isOfStore, leasedAddresses, type LeaseOwner, ownerOf, readLease } from "./go-directory.ts";
import { exclusively, indexDirectory, inStore, type Store, type StoreOptions } from "./store.ts";

export interface LeaseFile {
  address: string;
  /** Undefined when ADD did not make the file. */
  owner: LeaseOwner | undefined;
}

/** The leases according to the lease files. */
export function listLeases(directory: string): LeaseFile[] {
  const leases: LeaseFile[] = [];
  for (const address of leasedAddresses(directory)) {
    const text = readLease(directory, address);
    if (text !== undefined) leases.push({ address: formatAddress(address), owner: ownerOf(text) });
  }
  return leases;
}

/** Brings the index in line with the lease files, and removes empty files. ADD and DEL do the same for their range. */
export function importLeases(options: StoreOptions): void {
  inStore(options, undefined, (store) =>
    exclusively(store, () => {
      removeEmptyFiles(store);
      remakeBlocks(store);
    }));
}

/** Leaves the directory as Go's plugin would: removes leases of earlier boots, empty files, and the index. */
export function exportLeases(options: StoreOptions): void {
  const index = indexDirectory(options.directory);
  inStore(options, undefined, (store) =>
    exclusively(store, () => {
      endEarlierBoot(store);
      removeEmptyFiles(store);
      for (const name of namesIn(index)) removeFile(`${index}/${name}`);
    }));
  removeEmptyDirectory(index);
}

interface RetiredFile {
  what: string;
  staysBecause?: string;
  lease?: { containerId?: string };
}

/**
 * Removes the directory of a network that goes, with leases of which nothing else knows. What host-local does not know stays,
 * and the directory with it.
 */
export function retireLeases(options: StoreOptions, isDryRun: boolean): RetiredFile[] {
  const { directory } = options;
  if (!exists(directory)) return [];
  const leases = listLeases(directory), what = `directory ${directory}`;
  const removed = leases.map(({ address, owner }) => ({
    what: `lease ${address}${owner === undefined ? "" : ` of container ${owner.containerId}`}`,
    lease: { containerId: owner?.containerId },
  }));
  if (isDryRun) return [...removed, { what }];
  for (const { address } of leases) releaseAddress(options, parseAddress(address)!);
  exportLeases(options);
  for (const name of namesIn(directory)) if (isOfStore(name)) removeFile(`${directory}/${name}`);
  const [other] = namesIn(directory);
  if (other !== undefined) return [...removed, { what, staysBecause: `${other} is in it` }];
  removeEmptyDirectory(directory);
  return [...removed, { what }];
}

function removeEmptyFiles(store: Store): void {
  for (const address of leasedAddresses(store.directory)) {
    if (readLease(store.directory, address) === "") removeEmpty(store, address);
  }
}
