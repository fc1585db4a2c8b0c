/** The pools of a configuration, and where their leases are. */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { isPoolName } from "../../../cluster/pool-name.ts";
import { namesIn } from "../../../ffi/files.ts";
import { DEFAULT_POOLS_DIRECTORY, type LeaseOwner, withoutSpareSlashes } from "../../../ipam/go-directory.ts";
import type { StoreOptions } from "../../../ipam/store.ts";
import { warn } from "../../../process/warn.ts";
import type { PatchbayClusterConf } from "./patchbay-cluster.schema.ts";

/** A pool's leases, of whichever network. */
export interface PoolPlace {
  pool: string;
  options: StoreOptions;
}

/** Throws a CniError with key and value. */
export function configuredPlaces(conf: PatchbayClusterConf): PoolPlace[] {
  const { ipam } = conf;
  if (ipam === undefined) throw new CniError(INVALID_CONFIG, "IPAM config missing 'ipam' key");
  const { pool, pools } = ipam, key = pool === undefined ? "ipam.pools" : "ipam.pool";
  if (pool !== undefined && pools !== undefined) throw refused("ipam.pools", '"ipam.pool" is there, too');
  const names = pool === undefined ? pools ?? [] : [pool];
  if (names.length === 0) throw refused("ipam.pool", 'it is missing: "pool": "NAME"');
  const places: PoolPlace[] = [];
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!;
    if (!isPoolName(name)) {
      throw refused(key, `"${name}" is no name of a pool: small letters, digits, dots and hyphens`);
    }
    if (names.indexOf(name) < index) throw refused(key, `"${name}" is there twice`);
    places.push(placeOf(conf, name));
  }
  return places;
}

/** For DEL and GC, which judge nothing: the pools that have names of pools. */
export function namedPlaces(conf: PatchbayClusterConf): PoolPlace[] {
  const { pool, pools } = conf.ipam ?? {}, places: PoolPlace[] = [];
  for (const name of pool === undefined ? pools ?? [] : [pool]) {
    if (isPoolName(name)) places.push(placeOf(conf, name));
  }
  return places;
}

/** Every pool in which the network may have leases: the configuration may have named another one at ADD. */
export function existingPlaces(conf: PatchbayClusterConf): PoolPlace[] {
  return namesIn(dataDirectoryOf(conf)).filter(isPoolName).map((name) => placeOf(conf, name));
}

function placeOf(conf: PatchbayClusterConf, pool: string): PoolPlace {
  const directory = `${dataDirectoryOf(conf)}/${pool}`;
  return { pool, options: { directory, keep: false, quarantineSeconds: 0, report: warn } };
}

function dataDirectoryOf({ ipam }: PatchbayClusterConf): string {
  return withoutSpareSlashes(ipam?.dataDir ?? DEFAULT_POOLS_DIRECTORY);
}

export function poolOwner({ containerId, ifName, network }: {
  containerId: string;
  ifName: string;
  network: string;
}): LeaseOwner {
  return { containerId, ifName, inNetwork: network };
}

function refused(key: string, why: string): CniError {
  return new CniError(INVALID_CONFIG, `"${key}": ${why}`);
}
