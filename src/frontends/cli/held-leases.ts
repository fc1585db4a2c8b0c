/** The leases of host-local, and those of pools, that a command line is about. */
import { DEFAULT_DATA_DIRECTORY } from "../../ipam/go-directory.ts";
import { identify, isDirectory, namesIn } from "../../ffi/files.ts";
import { isMovedAway } from "../../ipam/moved-leases.ts";
import { leasesOfPools, type PoolLease } from "../../ipam/pool-directories.ts";
import { type LeaseFile, listLeases } from "../../ipam/take-over.ts";
import type { GivenArguments } from "./command.ts";

export function dataDirOf(given: GivenArguments): string {
  return given.value("data-dir") ?? DEFAULT_DATA_DIRECTORY;
}

export interface HeldLease {
  /** "" for what people have put into the directory of a pool. */
  network: string;
  address: string;
  /** Where several networks have their addresses from. */
  pool?: string;
  /** Undefined for a file that names no attachment. */
  containerId?: string;
  ifName?: string;
}

/** Returns the leases of one network, or of all. */
export function heldLeases(given: GivenArguments, network?: string): HeldLease[] {
  const folders = foldersOf(given).filter((name) => name === (network ?? name));
  const ofNetworks = folders.flatMap((name) =>
    listLeases(`${dataDirOf(given)}/${name}`).filter((lease) => !isMovedAway(lease)).map((lease) =>
      heldBy(name, lease)
    )
  );
  const ofPools = heldInPools(given, network).map(({ pool, network = "", address, owner }): HeldLease =>
    network === "" ? { network, pool, address } : { ...heldBy(network, { address, owner }), pool }
  );
  return [...ofNetworks, ...ofPools];
}

function heldBy(folder: string, { address, owner }: Pick<LeaseFile, "address" | "owner">): HeldLease {
  if (owner === undefined) return { network: folder, address };
  const { inNetwork = folder, ...rest } = owner;
  return { network: inNetwork, address, ...rest };
}

/** None where the command line names another directory. */
export function heldInPools(given: GivenArguments, network?: string): PoolLease[] {
  const leases = given.has("data-dir") ? [] : leasesOfPools();
  return network === undefined ? leases : leases.filter((lease) => lease.network === network);
}

export function networksWithLeases(given: GivenArguments): string[] {
  const inPools = heldInPools(given).flatMap(({ network }) => network ?? []);
  return [...new Set([...foldersOf(given), ...inPools])];
}

function foldersOf(given: GivenArguments): string[] {
  const directory = dataDirOf(given);
  return namesIn(directory).filter((name) => isDirectory(identify(`${directory}/${name}`)));
}
