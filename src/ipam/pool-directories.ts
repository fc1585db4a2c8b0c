/** The leases of pools: a directory for each pool, which networks share. */
import { entriesIn, exists } from "../ffi/files.ts";
import { DEFAULT_POOLS_DIRECTORY } from "./go-directory.ts";
import { type LeaseFile, listLeases } from "./take-over.ts";

export interface PoolLease extends LeaseFile {
  pool: string;
  directory: string;
  /** Undefined for what people have put there. */
  network: string | undefined;
}

export function leasesOfPools(pools = DEFAULT_POOLS_DIRECTORY): PoolLease[] {
  const entries = exists(pools) ? entriesIn(pools) : [];
  return entries.filter(({ kind }) => kind === "directory").flatMap(({ name }) => {
    const directory = `${pools}/${name}`;
    return listLeases(directory).map((lease) => ({
      ...lease,
      pool: name,
      directory,
      network: lease.owner?.inNetwork,
    }));
  });
}
