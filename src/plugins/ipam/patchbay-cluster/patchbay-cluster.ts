/**
 * patchbay-cluster: leases addresses out of the blocks that this host has of a cluster's pools (src/cluster).
 *
 * ADD and DEL ask nobody. What may be given out is in a file of this host, which the agent writes (`patchbay node`,
 * src/services/node); the leases are host-local's, one store for each pool, and each lease says its network. So networks that
 * share a pool never give an address twice, and no ledger is needed: DEL finds a lease without the agent and without its file.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import type { IpConfig, Result, Route } from "../../../cni/result.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import type { Allocated, AllocationRequest } from "../../../ipam/allocator.ts";
import { holdsLease, releaseAddresses } from "../../../ipam/claims.ts";
import { inStore, leaseOf, type Store, type StoredLease } from "../../../ipam/store.ts";
import {
  addMissingRoutes,
  allocateEach,
  dnsFrom,
  giveBackAll,
  hintsOf,
  ipConfig,
  requestedAddresses,
  takeRequested,
} from "../../shared/leasing.ts";
import type { PatchbayClusterConf } from "./patchbay-cluster.schema.ts";
import { validatePatchbayClusterConf } from "./patchbay-cluster.validate.gen.ts";
import { configuredPlaces, existingPlaces, namedPlaces, poolOwner, type PoolPlace } from "./places.ts";
import { loadRefusals, servedOf } from "./served-now.ts";
import type { Served } from "./served-sets.ts";

type At = Attachment<PatchbayClusterConf>;

export default definePlugin<PatchbayClusterConf>({
  name: "patchbay-cluster",
  validate: validatePatchbayClusterConf,
  checksWithoutPrevResult: true,
  judge,
  add: (at) => at.inAdd(() => take(at)) ?? at.prevResult ?? { cniVersion: at.conf.cniVersion },
  foresee: (at) => wholePools().foreseen(at),
  del,
  check,
  gc: (conf, isValid) => wholePools().releaseGone(conf, isValid),
  status: (conf) => wholePools().requireAddresses(conf),
  caveats: (conf, placed) => wholePools().poolCaveats(conf, placed),
  pools: (conf) => wholePools().addressPools(conf),
  retire: (conf, retirement) => wholePools().removeLeases(conf, retirement),
});

function wholePools() {
  return require("./whole-pools.ts") as typeof import("./whole-pools.ts");
}

/** Few calls ask for an address. */
function loadSingles() {
  return require("./asked-singles.ts") as typeof import("./asked-singles.ts");
}

function judge(conf: PatchbayClusterConf): void {
  const { cniVersion } = conf;
  if (configuredPlaces(conf).length < 2 || !/^0\.[12]\./.test(cniVersion)) return;
  throw new CniError(INVALID_CONFIG, `CNI version ${cniVersion} does not support more than 1 address per family`);
}

/** What one pool has given. */
interface Taken {
  place: PoolPlace;
  allocated: Allocated[];
  routes: readonly Route[];
}

/** One address of each family of each pool, or none. */
function take(at: At): Result {
  const { conf, containerId } = at, dns = dnsFrom(conf.ipam?.resolvConf), places = configuredPlaces(conf);
  const requested = requestedAddresses(at), lease = leaseOf(poolOwner(at)), taken: Taken[] = [];
  try {
    if (requested.length > 0) loadRefusals().requireInPools(requested, places.map(servedOf));
    for (const place of places) taken.push(takeFrom(place, { lease, containerId, requested }));
    if (requested.length > 0) throw loadRefusals().notAllGiven(requested);
  } catch (error) {
    for (const { place, allocated } of taken) {
      inStore(place.options, lease, (store) => giveBackAll(store, lease, allocated));
    }
    throw error;
  }
  const ips: IpConfig[] = [], routes: Route[] = [...conf.ipam?.routes ?? []];
  for (const one of taken) {
    for (const { address, range } of one.allocated) ips.push(ipConfig(address, range));
    addMissingRoutes(routes, one.routes);
  }
  return { cniVersion: conf.cniVersion, ips, routes, dns };
}

interface Wanted {
  lease: StoredLease;
  containerId: string;
  /** Without those that were given. */
  requested: Uint8Array[];
}

function takeFrom(place: PoolPlace, { lease, containerId, requested }: Wanted): Taken {
  const beforeMaking = () => void servedOf(place);
  return inStore({ ...place.options, beforeMaking }, lease, (store) => {
    const blocks = new ServedBlocks(store, place, { lease, containerId, requested: [...requested] }),
      { sets, file } = blocks.now(),
      rest = [...requested];
    if (rest.length > 0) loadRefusals().requireServed(rest, blocks.now(), place);
    const allocated = allocateEach(store, lease, sets.length, (family) => {
      const address = takeRequested(blocks.now().sets[family]!, rest), request = blocks.requestFor(family, address);
      if (request === undefined) throw blocks.refusal(family, address);
      return request;
    });
    requested.splice(0, requested.length, ...rest);
    return { place, allocated, routes: file.routes };
  });
}

/** What is served, as long as the store's lock is held: after a lapse the agent may have taken blocks away, and it is read again. */
class ServedBlocks {
  private served: Served | undefined;
  private lapses = 0;

  constructor(
    private readonly store: Store,
    private readonly place: PoolPlace,
    private readonly wanted: Wanted,
  ) {}

  now(): Served {
    const { lapses } = this.store;
    if (this.served === undefined || this.lapses !== lapses) {
      const served = servedOf(this.place), { requested } = this.wanted;
      this.served = requested.length === 0 ? served : loadSingles().withAskedSingles(served, requested);
      this.lapses = lapses;
    }
    return this.served;
  }

  /** Undefined when nothing is served of the family. */
  requestFor(family: number, requested: Uint8Array | undefined): AllocationRequest | undefined {
    const { lease, containerId } = this.wanted, set = this.now().sets[family]!;
    if (set.length === 0) return undefined;
    const passing = {
      lapses: this.lapses,
      readAgain: () => this.requestFor(family, requested),
      refusal: () => this.refusal(family, requested),
    };
    return { set, rangeId: String(family), lease, containerId, requested, passing };
  }

  refusal(family: number, requested: Uint8Array | undefined): Error {
    return loadRefusals().notGiven(this.place, this.now(), family, requested);
  }
}

/** The configuration may have named other pools at ADD: all are looked through for what the named ones do not have. */
function del(at: At): void {
  const owner = poolOwner(at), hints = hintsOf(at.prevResult), places = namedPlaces(at.conf);
  let released = 0;
  for (const { options } of places) released += releaseAddresses(options, owner, hints);
  if (released > 0 && released >= hints.length) return;
  for (const { pool, options } of existingPlaces(at.conf)) {
    if (places.every((place) => place.pool !== pool)) releaseAddresses(options, owner, hints);
  }
}

function check(at: At): string[] {
  const owner = poolOwner(at), hints = hintsOf(at.prevResult);
  return configuredPlaces(at.conf).filter(({ options }) => !holdsLease(options, owner, hints)).map(({ pool }) =>
    `patchbay-cluster: Failed to find address added by container ${at.containerId} in pool ${pool}`
  );
}
