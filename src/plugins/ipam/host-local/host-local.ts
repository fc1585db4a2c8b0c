/**
 * host-local: leases addresses from ranges on this host (CNI spec 1.1.0, section 4; reference plugin host-local).
 *
 * It needs no ledger, because the lease store is its record (src/ipam/store.ts, docs/lease-store.md): a lease names its
 * owner from the moment it is taken, and DEL finds it by container and interface. STATUS, GC and the keys
 * `quarantineSeconds` and `keepAcrossReboot` go beyond the reference plugin.
 */
import { invalidArg, parseCniArgs } from "../../../cni/args.ts";
import {
  CniError,
  errorText,
  INTERNAL,
  INVALID_CONFIG,
  IO_FAILURE,
  PLUGIN_NOT_AVAILABLE,
} from "../../../cni/error.ts";
import type { Dns, IpConfig, Result } from "../../../cni/result.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import type { Count, Pool } from "../../../contract/summaries.ts";
import { warn } from "../../../process/warn.ts";
import { ENOENT, SyscallError } from "../../../ffi/errno.ts";
import { readConfiguredFile } from "../../../ffi/files.ts";
import {
  allocate,
  type Allocated,
  countFree,
  countLeased,
  likelyNext,
  whyNotAvailable,
} from "../../../ipam/allocator.ts";
import { blockPrefix, indexIn } from "../../../ipam/layout.ts";
import {
  capacityOf,
  formatRangeSet,
  planRangeSets,
  type RangeConf,
  rangeOf,
  type RangeSet,
} from "../../../ipam/range.ts";
import { blockAt } from "../../../ipam/blocks.ts";
import { DEFAULT_DATA_DIRECTORY, leaseDirectory } from "../../../ipam/go-directory.ts";
import { holdsLease, releaseAddresses, releaseInvalid, unclaim } from "../../../ipam/claims.ts";
import {
  inStore,
  leaseOf,
  requireStore,
  type Store,
  type StoredLease,
  type StoreOptions,
} from "../../../ipam/store.ts";
import { formatAddress, formatPrefix, parseAddress, parsePrefix } from "../../../net/address.ts";
import type { HostLocalConf } from "./host-local.schema.ts";
import { validateHostLocalConf } from "./host-local.validate.gen.ts";
import { parseResolvConf } from "./resolv-conf.ts";

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
  // Uses only the configured directory, because the ranges may have changed since ADD.
  del: (at) => releaseAddresses(storeOf(at.conf), at, hintsOf(at)),
  check,
  gc: (conf, isValid) => releaseInvalid(storeOf(conf), isValid),
  status,
  caveats(conf, placed) {
    const { hostLocalCaveats } = require("./caveats.ts") as typeof import("./caveats.ts");
    return hostLocalCaveats(conf, placed);
  },
  pools: (conf) =>
    configuredSets(conf).map((set) => ({ spans: set, count: () => countsOf(set, storeOf(conf).directory) })),
  retire(conf, retirement) {
    const { removeLeaseDirectory } = require(
      "../../../ipam/take-over.ts",
    ) as typeof import("../../../ipam/take-over.ts");
    return removeLeaseDirectory(storeOf(conf), retirement);
  },
});

function take(at: At): Result {
  const { conf } = at, sets = rangeSetsOf(conf), requested = requestedAddresses(at);
  const dns = dnsOf(conf), ips: IpConfig[] = [];
  for (const { address, range } of allocateAll(at, sets, requested)) ips.push(ipConfig(address, range));
  return { cniVersion: conf.cniVersion, ips, routes: conf.ipam!.routes, dns };
}

function ipConfig(address: Uint8Array, { subnet, gateway }: Allocated["range"]): IpConfig {
  return { address: `${formatAddress(address)}/${subnet.bits}`, gateway: formatAddress(gateway) };
}

function dnsOf({ ipam }: HostLocalConf): Dns | undefined {
  return ipam?.resolvConf ? readResolvConf(ipam.resolvConf) : undefined;
}

/** The addresses that would probably be leased next, according to the lease files. */
function foresee(at: At): Result {
  const { conf } = at;
  const requested = requestedAddresses(at), ips: IpConfig[] = [], { directory } = storeOf(conf);
  const dns = dnsOf(conf);
  rangeSetsOf(conf).forEach((set, index) => {
    const refused = (reason: string) => failure(`failed to allocate for range ${index}: `, new Error(reason));
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
  const { containerId } = at;
  const lease = leaseOf(at);
  return inStore(storeOf(at.conf), lease, (store) => {
    const taken: Allocated[] = [], requested = [...wanted];
    try {
      for (const set of sets) {
        const rangeId = String(taken.length);
        taken.push(allocate(store, { set, rangeId, lease, containerId, requested: takeRequested(set, requested) }));
      }
    } catch (error) {
      undo(store, lease, taken);
      throw failure(`failed to allocate for range ${taken.length}: `, error);
    }
    if (requested.length === 0) return taken;
    undo(store, lease, taken);
    return requireNoneLeft(requested) ?? taken;
  });
}

function requireNoneLeft(requested: readonly Uint8Array[]): void {
  if (requested.length === 0) return;
  throw new CniError(INTERNAL, `failed to allocate all requested IPs: ${requested.map(formatAddress).join(" ")}`);
}

/** Removes and returns the first requested address that is in the set. */
function takeRequested(set: RangeSet, requested: Uint8Array[]): Uint8Array | undefined {
  for (let index = 0; index < requested.length; index++) {
    if (rangeOf(set, requested[index]!) !== undefined) return requested.splice(index, 1)[0];
  }
  return undefined;
}

function undo(store: Store, lease: StoredLease, taken: Allocated[]): void {
  for (const { address, range } of taken) {
    const prefix = blockPrefix(range.subnet, address);
    unclaim(store, blockAt(store, prefix, true), indexIn(prefix, address), lease);
  }
}

function check(at: At): string[] {
  if (holdsLease(storeOf(at.conf), at, hintsOf(at))) return [];
  return [`host-local: Failed to find address added by container ${at.containerId}`];
}

/** The addresses of prevResult, which the attachment probably leases. */
function hintsOf({ prevResult }: At): Uint8Array[] {
  const hints: Uint8Array[] = [];
  for (const { address } of prevResult?.ips ?? []) {
    const prefix = parsePrefix(address);
    if (prefix !== undefined) hints.push(prefix.bytes);
  }
  return hints;
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

/** Counts the lease files. */
function countsOf(set: RangeSet, directory: string): Pool {
  return {
    ranges: formatRangeSet(set),
    subnets: set.map(({ subnet }) => formatPrefix(subnet)),
    leased: countLeased(directory, set),
    free: exactly(countFree(directory, set)),
    capacity: exactly(capacityOf(set)),
  };
}

function exactly(count: bigint): Count {
  return count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count;
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

/** Without duplicates. A prefix length is allowed and ignored. */
function requestedAddresses({ conf, cniArgs }: At): Uint8Array[] {
  const { IP } = parseCniArgs(cniArgs, ["IP"]);
  const texts = [...conf.args?.cni?.ips ?? [], ...conf.runtimeConfig?.ips ?? []];
  if (IP) {
    if (addressOf(IP) === undefined) throw invalidArg("IP", IP, `invalid IP address ${IP}`);
    texts.unshift(IP);
  }
  if (texts.length === 0) return [];
  const addresses = texts.map((text) => addressOf(text)!);
  return [...new Map(addresses.map((address) => [formatAddress(address), address])).values()];
}

function addressOf(text: string): Uint8Array | undefined {
  return text.includes("/") ? parsePrefix(text)?.bytes : parseAddress(text);
}

function readResolvConf(path: string): Dns {
  try {
    const text = readConfiguredFile(path);
    if (text === undefined) throw new SyscallError("open", ENOENT, path);
    return parseResolvConf(text);
  } catch (error) {
    throw failure("", error);
  }
}

function failure(context: string, cause: unknown): CniError {
  const code = cause instanceof CniError ? cause.code : cause instanceof SyscallError ? IO_FAILURE : INTERNAL;
  return new CniError(code, context + errorText(cause), "", { cause });
}
