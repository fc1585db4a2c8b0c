/**
 * host-local: leases addresses from ranges on this host (CNI spec 1.1.0, section 4; reference plugin host-local).
 *
 * It needs no ledger, because the lease store is its record (src/ipam/store.ts, docs/lease-store.md): a lease names its
 * owner from the moment it is taken, and DEL finds it by container and interface. STATUS, GC and the keys
 * `quarantineSeconds` and `keepAcrossReboot` go beyond the reference plugin.
 */
import { CniError, errorText, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import type { IpConfig, Result } from "../../../cni/result.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { exists } from "../../../ffi/files.ts";
import { warn } from "../../../process/warn.ts";
import { type Allocated, type AllocationRequest, likelyNext, whyNotAvailable } from "../../../ipam/allocator.ts";
import {
  capacityOf,
  formatRangeSet,
  planRangeSets,
  type RangeConf,
  rangeOf,
  type RangeSet,
  rangesIn,
} from "../../../ipam/range.ts";
import { DEFAULT_DATA_DIRECTORY, leaseDirectory, type LeaseOwner } from "../../../ipam/go-directory.ts";
import { holdsLease, releaseAddresses, releaseInvalid } from "../../../ipam/claims.ts";
import type { OwnLeases } from "../../../ipam/moved-leases.ts";
import { inStore, leaseOf, movedPath, requireStore, type StoreOptions } from "../../../ipam/store.ts";
import {
  allocateEach,
  dnsFrom,
  giveBackAll,
  hintsOf,
  ipConfig,
  leasingFailure,
  requestedAddresses,
  requireNoneLeft,
  takeRequested,
} from "../../shared/leasing.ts";
import { poolCounts } from "../../shared/pool-counts.ts";
import type { HostLocalConf } from "./host-local.schema.ts";
import { validateHostLocalConf } from "./host-local.validate.gen.ts";

type At = Attachment<HostLocalConf>;

export default definePlugin<HostLocalConf>({
  name: "host-local",
  validate: validateHostLocalConf,
  checksWithoutPrevResult: true,
  // The capability `ipRanges` is not known before ADD.
  judge: (conf, call) => void (call === undefined ? configuredSets(conf) : rangeSetsOf(conf)),
  missingCapability: (conf) => writtenSets(conf).length === 0 ? "ipRanges" : undefined,
  add: (at) => at.inAdd(() => take(at)) ?? at.prevResult ?? { cniVersion: at.conf.cniVersion },
  foresee,
  del,
  check,
  gc: (conf, isValid) => releaseInvalid(storeOf(conf), isValid),
  status,
  caveats(conf, placed) {
    const { hostLocalCaveats } = require("./caveats.ts") as typeof import("./caveats.ts");
    return hostLocalCaveats(conf, placed);
  },
  pools: (conf) =>
    configuredSets(conf).map((set) => ({
      spans: rangesIn(set),
      count: () => poolCounts(set, storeOf(conf).directory),
    })),
  retire(conf, retirement) {
    const { removeLeaseDirectory } = require(
      "../../../ipam/take-over.ts",
    ) as typeof import("../../../ipam/take-over.ts");
    return removeLeaseDirectory(storeOf(conf), retirement);
  },
});

function take(at: At): Result {
  const { conf } = at, sets = rangeSetsOf(conf), requested = requestedAddresses(at);
  const dns = dnsFrom(conf.ipam?.resolvConf), ips: IpConfig[] = [];
  for (const { address, range } of allocateAll(at, sets, requested)) ips.push(ipConfig(address, range));
  return { cniVersion: conf.cniVersion, ips, routes: conf.ipam!.routes, dns };
}

/** The addresses that would probably be leased next, according to the lease files. */
function foresee(at: At): Result {
  const { conf } = at;
  const requested = requestedAddresses(at), ips: IpConfig[] = [], { directory } = storeOf(conf);
  const dns = dnsFrom(conf.ipam?.resolvConf);
  rangeSetsOf(conf).forEach((set, index) => {
    const refused = (reason: string) => failureOf(index, new Error(reason));
    const wanted = takeRequested(set, requested), reason = wanted && whyNotAvailable(directory, set, wanted);
    if (reason !== undefined) throw refused(reason);
    const next = wanted ?? likelyNext(directory, set, String(index));
    if (next === undefined) throw refused(`no IP addresses available in range set: ${formatRangeSet(set)}`);
    ips.push(ipConfig(next, rangeOf(set, next)!));
  });
  requireNoneLeft(requested);
  return { cniVersion: conf.cniVersion, ips, routes: conf.ipam?.routes, dns };
}

/** Allocates one address of each set, or none on failure. */
function allocateAll(at: At, sets: RangeSet[], wanted: readonly Uint8Array[]): Allocated[] {
  const { containerId } = at, lease = leaseOf(ownerOf(at));
  return inStore(storeOf(at.conf), lease, (store) => {
    const requested = [...wanted];
    const requestFor = (index: number): AllocationRequest => {
      const set = sets[index]!;
      return { set, rangeId: String(index), lease, containerId, requested: takeRequested(set, requested) };
    };
    const taken = allocateEach(store, lease, sets.length, requestFor, failureOf);
    if (requested.length > 0) giveBackAll(store, lease, taken);
    requireNoneLeft(requested);
    return taken;
  });
}

function failureOf(index: number, error: unknown): CniError {
  return leasingFailure(`failed to allocate for range ${index}: `, error);
}

/** Uses only the configured directory, because the ranges may have changed since ADD; and the one where its leases have gone. */
function del(at: At): void {
  const options = storeOf(at.conf), owner = ownerOf(at), hints = hintsOf(at.prevResult);
  releaseAddresses(options, owner, hints);
  const moved = movedFrom(options, owner);
  if (moved !== undefined) releaseAddresses(moved.options, moved.owner, hints);
}

function movedFrom(options: StoreOptions, owner: LeaseOwner): OwnLeases | undefined {
  if (!exists(movedPath(options.directory))) return undefined;
  const { movedLeases } = require("../../../ipam/moved-leases.ts") as typeof import("../../../ipam/moved-leases.ts");
  return movedLeases(options, owner);
}

function ownerOf({ containerId, ifName }: At): LeaseOwner {
  return { containerId, ifName };
}

function check(at: At): string[] {
  const options = storeOf(at.conf), owner = ownerOf(at), hints = hintsOf(at.prevResult);
  if (holdsLease(options, owner, hints)) return [];
  const moved = movedFrom(options, owner);
  if (moved !== undefined && holdsLease(moved.options, moved.owner, hints)) return [];
  return [`host-local: Failed to find address added by container ${at.containerId}`];
}

/**
 * A full pool is no failure: engines would treat the node as broken and evict its working containers. ADD and
 * `patchbay status` report a full pool.
 */
function status(conf: HostLocalConf): void {
  for (const set of configuredSets(conf)) {
    if (capacityOf(set) > 0) continue;
    const message = `no IP addresses available in range set: ${formatRangeSet(set)}`;
    throw new CniError(PLUGIN_NOT_AVAILABLE, message, "it has none besides its gateway");
  }
  const { directory } = storeOf(conf);
  try {
    requireStore(directory);
  } catch (cause) {
    const message = `no leases can be kept in ${directory}`;
    throw new CniError(PLUGIN_NOT_AVAILABLE, message, errorText(cause), { cause });
  }
}

function storeOf({ name, ipam }: HostLocalConf): StoreOptions {
  const { dataDir = DEFAULT_DATA_DIRECTORY, keepAcrossReboot = false, quarantineSeconds = 0 } = ipam ?? {};
  return { directory: leaseDirectory(dataDir, name), keep: keepAcrossReboot, quarantineSeconds, report: warn };
}

/** May be empty, because STATUS does not get the capability `ipRanges`. */
function configuredSets(conf: HostLocalConf): RangeSet[] {
  return conf.ipam !== undefined && writtenSets(conf).length === 0 ? [] : rangeSetsOf(conf);
}

function rangeSetsOf(conf: HostLocalConf): RangeSet[] {
  if (conf.ipam === undefined) throw new CniError(INVALID_CONFIG, "IPAM config missing 'ipam' key");
  return planRangeSets(writtenSets(conf), conf.cniVersion);
}

/** In the order that numbers them in file names: the capability's, the single range of old versions, the list. */
function writtenSets({ ipam, runtimeConfig }: HostLocalConf): RangeConf[][] {
  const single = ipam?.subnet ? [[ipam]] : [];
  return [...runtimeConfig?.ipRanges ?? [], ...single, ...ipam?.ranges ?? []];
}
