/**
 * Taking over a network from the Go host-local plugin, and giving it back. The lease files are the same for both; only
 * the index beside them is made or removed.
 */
import { idAt, identify, isDirectory, namesIn, removeEmptyDirectory, removeFile } from "../ffi/files.ts";
import { formatAddress } from "../net/address.ts";
import { endEarlierBoot, remakeBlocks, removeEmpty } from "./blocks.ts";
import { releaseLease } from "./claims.ts";
import { isOfStore, leasedAddresses, type LeaseOwner, leaseOwnerIn, readLease } from "./go-directory.ts";
import { exclusively, indexDirectory, inStore, type Store, type StoreOptions } from "./store.ts";

export interface LeaseFile {
  address: string;
  /** Undefined when ADD did not make the file. */
  owner: LeaseOwner | undefined;
  /** The content of the file. */
  text: string;
}

/** The leases according to the lease files. */
export function listLeases(directory: string): LeaseFile[] {
  return leasedAddresses(directory).flatMap((address) => leaseAt(directory, address) ?? []);
}

export function leaseAt(directory: string, address: Uint8Array): LeaseFile | undefined {
  const text = readLease(directory, address);
  return text === undefined ? undefined : { address: formatAddress(address), owner: leaseOwnerIn(text), text };
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

/** The part of the contract's `Retirement` (contract/resource.ts) that is needed here. */
interface LeaseRemoval {
  isDryRun: boolean;
  mayRelease(what: string): boolean;
}

interface RemovedLease {
  what: string;
  staysBecause?: string;
  lease?: { containerId?: string };
}

/**
 * Removes the directory of a network that goes, with leases of which nothing else knows. What host-local does not know stays,
 * and the directory with it; so do leases that have been taken meanwhile.
 */
export function removeLeaseDirectory(options: StoreOptions, { isDryRun, mayRelease }: LeaseRemoval): RemovedLease[] {
  const { directory } = options;
  if (idAt(directory) === undefined) return [];
  // A link may lead to another network's leases.
  if (!isDirectory(identify(directory, false))) {
    throw new Error(`${directory} is not a directory; remove it, or put the directory of the leases in its place`);
  }
  const leases = listLeases(directory), directoryItself = `directory ${directory}`;
  const removed = leases.map((lease) => ({
    what: textOf(lease),
    lease: { containerId: lease.owner?.containerId },
  }));
  if (isDryRun) return [...removed, { what: directoryItself }];
  for (const lease of leases) if (mayRelease(textOf(lease))) releaseLease(options, lease);
  const staysBecause = whyDirectoryStays(options);
  return [...removed.filter(({ what }) => mayRelease(what)), { what: directoryItself, staysBecause }];
}

function textOf({ address, owner }: LeaseFile): string {
  return `lease ${address}${owner === undefined ? "" : ` of container ${owner.containerId}`}`;
}

/** Removes it with what host-local keeps in it besides leases; undefined when it is gone. */
function whyDirectoryStays(options: StoreOptions): string | undefined {
  const { directory } = options, [lease] = listLeases(directory);
  if (lease !== undefined) return `${textOf(lease)} has been taken meanwhile`;
  exportLeases(options);
  for (const name of namesIn(directory)) if (isOfStore(name)) removeFile(`${directory}/${name}`);
  if (removeEmptyDirectory(directory)) return undefined;
  return `${namesIn(directory)[0] ?? "something"} is in it`;
}

/** Only under the exclusive lock. */
export function removeEmptyFiles(store: Store): void {
  for (const address of leasedAddresses(store.directory)) {
    if (readLease(store.directory, address) === "") removeEmpty(store, address);
  }
}
