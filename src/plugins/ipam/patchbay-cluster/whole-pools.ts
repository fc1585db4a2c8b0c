/** What is asked of pools without a container: whether ADD would work, how full they are, which leases are nobody's. */
import { CniError, errorText, PLUGIN_NOT_AVAILABLE, undefinedOnError } from "../../../cni/error.ts";
import type { IpConfig, Result, Route } from "../../../cni/result.ts";
import { counted } from "../../../contract/counted.ts";
import type { AddressPool, Attachment, Caveat, Placed } from "../../../contract/plugin.ts";
import type { Retired, Retirement } from "../../../contract/resource.ts";
import { likelyNext, whyNotAvailable } from "../../../ipam/allocator.ts";
import { releaseInvalid } from "../../../ipam/claims.ts";
import { rangeOf, type RangeSet, rangesIn } from "../../../ipam/range.ts";
import { requireStore } from "../../../ipam/store.ts";
import { listLeases, removeLeaseDirectory } from "../../../ipam/take-over.ts";
import { formatPrefix, type Prefix } from "../../../net/address.ts";
import { addMissingRoutes, dnsFrom, ipConfig, requestedAddresses, takeRequested } from "../../shared/leasing.ts";
import { poolCounts } from "../../shared/pool-counts.ts";
import { refusedRouteCaveats } from "../../shared/route-caveats.ts";
import { withAskedSingles } from "./asked-singles.ts";
import type { PatchbayClusterConf } from "./patchbay-cluster.schema.ts";
import { configuredPlaces, existingPlaces, namedPlaces, type PoolPlace } from "./places.ts";
import { hindrancesOf, notAllGiven, notGiven, requireInPools, requireServed, whyNoMore } from "./refusals.ts";
import { servedOf } from "./served-now.ts";
import { readServed, type Served } from "./served-sets.ts";

/** The addresses that would probably be leased next, according to the lease files. */
export function foreseen(at: Attachment<PatchbayClusterConf>): Result {
  const { conf } = at, requested = requestedAddresses(at), dns = dnsFrom(conf.ipam?.resolvConf);
  const ips: IpConfig[] = [], routes: Route[] = [...conf.ipam?.routes ?? []], places = configuredPlaces(conf);
  if (requested.length > 0) requireInPools(requested, places.map(servedOf));
  for (const place of places) {
    const served = withAskedSingles(servedOf(place), requested), { directory } = place.options;
    requireServed(requested, served, place);
    served.sets.forEach((set, family) => {
      const wanted = takeRequested(set, requested);
      const isTaken = wanted !== undefined && whyNotAvailable(directory, set, wanted) !== undefined;
      const next = isTaken ? undefined : wanted ?? likelyNext(directory, set, String(family));
      if (next === undefined) throw notGiven(place, served, family, wanted);
      ips.push(ipConfig(next, rangeOf(set, next)!));
    });
    addMissingRoutes(routes, served.file.routes);
  }
  if (requested.length > 0) throw notAllGiven(requested);
  return { cniVersion: conf.cniVersion, ips, routes, dns };
}

/** In whichever pool: the configuration may have named others when they were taken. */
export function releaseGone(
  conf: PatchbayClusterConf,
  isValid: (owner: { containerId: string; ifName?: string }) => boolean,
): void {
  for (const { options } of allPlaces(conf)) releaseInvalid(options, isValid, conf.name);
}

function allPlaces(conf: PatchbayClusterConf): PoolPlace[] {
  const named = namedPlaces(conf), names = named.map(({ pool }) => pool);
  return [...named, ...existingPlaces(conf).filter(({ pool }) => !names.includes(pool))];
}

/**
 * STATUS fails where nothing is served, and nothing will be for a while. A full pool is no failure: engines would treat the
 * node as broken and evict its working containers. Neither is a pool of which a block is claimed when ADD wants one.
 */
export function requireAddresses(conf: PatchbayClusterConf): void {
  for (const place of configuredPlaces(conf)) {
    const { pool, options: { directory } } = place, { file, sets } = notAvailableWithout(() => servedOf(place));
    notAvailableWithout(() => requireStore(directory), `no leases can be kept in ${directory}`);
    if (sets.every((set) => set.length > 0)) continue;
    if (file.blocks.ripening === 0 && hindrancesOf(file).length === 0) continue;
    const message = `pool ${pool}: this node ${file.node} has no block of it to give addresses out of`;
    throw new CniError(PLUGIN_NOT_AVAILABLE, message, whyNoMore(file));
  }
}

function notAvailableWithout<Value>(work: () => Value, message?: string): Value {
  try {
    return work();
  } catch (cause) {
    if (message === undefined && cause instanceof CniError) {
      throw new CniError(PLUGIN_NOT_AVAILABLE, cause.message, cause.details, { cause });
    }
    throw new CniError(PLUGIN_NOT_AVAILABLE, message ?? errorText(cause), message && errorText(cause), { cause });
  }
}

/** A pool that is not here is a caveat for commands that look at files alone; the others ask STATUS. */
export function poolCaveats(conf: PatchbayClusterConf, { own, host }: Placed): Caveat[] {
  const served = readablePlaces(conf), known = served.map(({ place }) => place.pool);
  const unknown = host !== undefined ? [] : namedPlaces(conf).filter(({ pool }) => !known.includes(pool));
  const subnets = served.flatMap(({ sets }) => sets.flatMap(subnetsIn));
  return [
    ...unknown.map(({ pool }) => ({
      key: conf.ipam?.pool === undefined ? "ipam.pools" : "ipam.pool",
      text: `nothing of pool "${pool}" is served on this host: 'patchbay pool list' shows the cluster's pools`,
    })),
    ...own === undefined || subnets.length === 0 ? [] : refusedRouteCaveats(conf.ipam?.routes ?? [], subnets),
  ];
}

export function addressPools(conf: PatchbayClusterConf): AddressPool[] {
  return readablePlaces(conf).flatMap(({ place: { pool, options: { directory } }, file, sets }) =>
    sets.flatMap((set, family): AddressPool | [] => {
      if (set.length === 0) return [];
      const ranges = `of pool ${pool}, ${counted(file.blocks.served, "block")} of ${file.extents[family]!.subnet}`;
      const subnets = subnetsIn(set).map(formatPrefix);
      return {
        spans: rangesIn(set),
        sharedLeases: directory,
        count: () => ({ ...poolCounts(set, directory), ranges, subnets }),
      };
    })
  );
}

/** What cannot be read, STATUS says. */
function readablePlaces(conf: PatchbayClusterConf): (Served & { place: PoolPlace })[] {
  return namedPlaces(conf).flatMap((place) => {
    const served = undefinedOnError(() => readServed(place.pool));
    return served === undefined ? [] : [{ ...served, place }];
  });
}

function subnetsIn(set: RangeSet): Prefix[] {
  return [...new Map(rangesIn(set).map(({ subnet }) => [formatPrefix(subnet), subnet])).values()];
}

/** The network's own leases, in whichever pool; the directory of one that it names goes when nobody has a lease in it. */
export function removeLeases(conf: PatchbayClusterConf, retirement: Retirement): Retired[] {
  const named = namedPlaces(conf).map(({ pool }) => pool);
  const places = allPlaces(conf).filter(({ pool, options: { directory } }) =>
    named.includes(pool) || listLeases(directory).some(({ owner }) => owner?.inNetwork === conf.name)
  );
  return places.flatMap(({ options }) => removeLeaseDirectory(options, retirement, conf.name));
}
