/** Why nothing of a pool is given: which pool, how much of it is in use, what the store says, and what to do. */
import { CniError, errorText, INTERNAL, INVALID_CONFIG, IO_FAILURE, TRY_AGAIN_LATER } from "../../../cni/error.ts";
import { agentLockPath, type ServedFile, servedPath, surroundings, wishPath } from "../../../cluster/served-file.ts";
import { counted } from "../../../contract/counted.ts";
import { preciseSecondsSinceBoot } from "../../../ffi/clock.ts";
import { SyscallError } from "../../../ffi/errno.ts";
import { O_RDONLY, whileOpen } from "../../../ffi/files.ts";
import { countLeased } from "../../../ipam/allocator.ts";
import { capacityOf, isInRange, rangeOf, rangesIn } from "../../../ipam/range.ts";
import { leaseAt } from "../../../ipam/take-over.ts";
import {
  compareAddresses,
  formatAddress,
  fromBigInt,
  parseAddress,
  parsePrefix,
  toBigInt,
} from "../../../net/address.ts";
import { tryLockShared } from "../../../process/lock.ts";
import { stateDirectory } from "../../../process/state-directory.ts";
import { openExistingState, overwriteStateFile } from "../../../process/state-file.ts";
import type { PoolPlace } from "./places.ts";
import type { Served } from "./served-sets.ts";

/** There is no file. */
export function notServed(pool: string): CniError {
  leaveWish(pool);
  const why = isAgentRunning()
    ? "'patchbay node' looks for it now: try again; when that does not help, it has not joined the cluster ('patchbay node " +
      "check'), or there is no such pool ('patchbay pool list')"
    : NO_AGENT;
  return new CniError(
    TRY_AGAIN_LATER,
    `pool ${pool}: nothing of it has been served on this host since the boot`,
    why,
  );
}

/** There is one that is not to be believed, or not to be understood. */
export function unusable(pool: string, cause: unknown): CniError {
  const path = servedPath(stateDirectory(), pool), isKernels = cause instanceof SyscallError;
  return new CniError(
    isKernels ? IO_FAILURE : TRY_AGAIN_LATER,
    `pool ${pool}: what is served of it on this host cannot be used: ${
      isKernels ? cause.message : `${path}: ${errorText(cause)}`
    }`,
    "'systemctl restart patchbay-node' writes it anew",
    { cause },
  );
}

/** The agent would give blocks back that have leases there. */
export function leasedElsewhere(directory: string, leases: string): CniError {
  return new CniError(
    INVALID_CONFIG,
    `"ipam.dataDir": the leases would be in ${directory}, and the agent of this host counts those in ${leases}`,
    `"dataDir": "${leases}", or another directory for the agent: 'patchbay node --data-dir'`,
  );
}

/** No address of a family, or not this one. */
export function notGiven(place: PoolPlace, served: Served, family: number, address?: Uint8Array): CniError {
  if (address !== undefined) return notThis(place, served, address);
  const { pool, options } = place, { file, sets } = served, set = sets[family]!;
  leaveWish(pool);
  const { node, extents, blocks } = file, capacity = capacityOf(set), leased = countLeased(options.directory, set);
  const what = set.length === 0
    ? `this node ${node} has no block of it to give addresses out of`
    : `${leased} of ${capacity} addresses in the ${counted(blocks.served, "block")} of this node ${node} are in use`;
  return new CniError(codeOf(file), `pool ${pool} (${extents[family]!.subnet}): ${what}`, whyNoMore(file));
}

/** Waiting helps where a block may come, or will be ripe. */
function codeOf({ obstacle, blocks }: ServedFile): number {
  return obstacle === undefined || blocks.ripening > 0 ? TRY_AGAIN_LATER : INTERNAL;
}

/** Why no further block comes, or when; `claimed` is what the agent has been asked for. */
export function whyNoMore(file: ServedFile, claimed = "another block is being claimed"): string {
  const { pool, blocks: { ripening, closing, unknown } } = file, hindrances = hindrancesOf(file);
  const reasons = hindrances.length > 0 ? [`no further block comes: ${hindrances.join(", and ")}`] : [];
  if (ripening > 0) reasons.push(`${counted(ripening, "block")} ${isOrAre(ripening)} not ripe yet`);
  if (closing > 0) reasons.push(`${counted(closing, "block")} ${isOrAre(closing)} being given back`);
  if (unknown > 0) {
    const served = `${counted(unknown, "block")} ${isOrAre(unknown)} not served before the next boot`;
    reasons.push(`${served}: nobody knows which addresses containers have`);
  }
  if (hindrances.length === 0 && ripening === 0) reasons.push(claimed);
  return `${reasons.join("; ")}; 'patchbay pool show ${pool}' says who has its blocks`;
}

function isOrAre(count: number): string {
  return count === 1 ? "is" : "are";
}

/** What keeps further blocks away; none when one may come any time. */
export function hindrancesOf({ store, obstacle, isFull, silent }: ServedFile): string[] {
  const hindrances = obstacle === undefined ? [] : [obstacle];
  if (isFull) hindrances.push("each of its blocks has an owner");
  if (!isAgentRunning()) hindrances.push(NO_AGENT);
  else if (silent !== undefined) {
    const seconds = Math.max(0, Math.floor(preciseSecondsSinceBoot() - silent.since));
    hindrances.push(`${store} has not answered for ${seconds} s (${silent.why})`);
  }
  return hindrances;
}

const NO_AGENT = "'patchbay node' does not run on this host ('systemctl start patchbay-node' starts it)";

/** Throws for an address of the pool that is not given out here; those that are not the pool's are left to others. */
export function requireServed(wanted: readonly Uint8Array[], served: Served, place: PoolPlace): void {
  for (const address of wanted) {
    const isGiven = served.sets.some((set) => rangeOf(set, address) !== undefined);
    if (!isGiven && blockOf(served.file, address) !== undefined) throw notThis(place, served, address);
  }
}

function notThis({ pool, options }: PoolPlace, { file, sets }: Served, address: Uint8Array): CniError {
  const text = formatAddress(address), { node } = file;
  if (sets.some((set) => rangeOf(set, address) !== undefined)) {
    return new CniError(
      INTERNAL,
      `${text} of pool ${pool} is not available: ${holderOf(options.directory, address)}`,
    );
  }
  const { index, first, last, gateway } = blockOf(file, address)!;
  if (gateway !== undefined && compareAddresses(gateway, address) === 0) {
    return new CniError(INTERNAL, `${text} is a gateway of pool ${pool}`);
  }
  const block = { subnet: { bytes: new Uint8Array(first.length), bits: 0 }, start: first, end: last };
  if (sets.some((set) => rangesIn(set).some(({ start }) => isInRange(block, start)))) {
    return new CniError(INTERNAL, `${text} is in a block of this node ${node}, but pool ${pool} keeps it from use`);
  }
  leaveWish(pool, text);
  const other = file.ofOthers?.[text];
  if (other !== undefined) {
    const show = `'patchbay pool show ${pool}' says who has its blocks`;
    return new CniError(TRY_AGAIN_LATER, `${text} of pool ${pool} is given out by node ${other}`, show);
  }
  if (file.singles?.all.includes(text)) {
    const wanted = `${text} of pool ${pool} is not this node ${node}'s yet`;
    return new CniError(codeOf(file), wanted, whyNoMore(file, "it is being claimed: try again"));
  }
  const message = `${text} is in block ${index} of pool ${pool}, which this node ${node} does not serve`;
  return new CniError(codeOf(file), message, whyNoMore(file, "unless it is another's, it is being claimed"));
}

function holderOf(directory: string, address: Uint8Array): string {
  const { containerId, inNetwork } = leaseAt(directory, address)?.owner ?? {};
  if (inNetwork === undefined) return `${directory}/${formatAddress(address)} reserves it`;
  return `container ${containerId} of network ${inNetwork} has it`;
}

/** The block with the address, whoever has it; undefined where the pool does not have the address. */
function blockOf({ extents, singles }: ServedFile, address: Uint8Array) {
  const isSingle = singles?.all.includes(formatAddress(address)) === true;
  for (const extent of extents) {
    const { first, last, blockSize } = extent;
    const [start, end] = [first, last].map((text) => parseAddress(text)!) as [Uint8Array, Uint8Array];
    if (start.length !== address.length) continue;
    if (isSingle && start.length === address.length) {
      return { index: 0n, gateway: undefined, first: address, last: address };
    }
    const distance = toBigInt(address) - toBigInt(start);
    if (distance < 0n || toBigInt(address) > toBigInt(end)) return undefined;
    const size = BigInt(blockSize), index = distance / size, from = toBigInt(start) + index * size;
    const { gateway } = surroundings(address, extent, parsePrefix(extent.subnet)!);
    return {
      index,
      gateway,
      first: fromBigInt(from, start.length),
      last: fromBigInt(from + size - 1n, start.length),
    };
  }
  return undefined;
}

/** Throws for addresses that are in none of the pools. */
export function requireInPools(addresses: readonly Uint8Array[], served: readonly Served[]): void {
  const outside = addresses.find((address) => served.every(({ file }) => blockOf(file, address) === undefined));
  if (outside === undefined) return;
  const names = served.map(({ file: { pool, extents } }) => `${pool} (${extents.map(spanText).join(" and ")})`);
  throw new CniError(INTERNAL, `${formatAddress(outside)} is not in pool ${names.join(", nor in ")}`);
}

/** Each pool has given its addresses, and one that was asked for is none of them. */
export function notAllGiven([address]: readonly Uint8Array[]): CniError {
  return new CniError(
    INTERNAL,
    `a pool gives one address of each family, and ${formatAddress(address!)} would be another`,
  );
}

function spanText({ first, last, subnet }: ServedFile["extents"][number]): string {
  return `${first} to ${last} of ${subnet}`;
}

/** For the agent. It may be lost, and so may its reason: the call is refused anyway. */
function leaveWish(pool: string, address?: string): void {
  try {
    const wish = { pool, address, at: preciseSecondsSinceBoot() };
    overwriteStateFile(wishPath(stateDirectory(), pool), `${JSON.stringify(wish)}\n`);
  } catch {
    // The state directory is not there, or full.
  }
}

/** It holds its lock as long as it runs, and when it starts it waits for those who look. */
function isAgentRunning(): boolean {
  try {
    const lock = openExistingState(agentLockPath(stateDirectory()), O_RDONLY);
    return lock !== undefined && whileOpen(lock.fd, (fd) => !tryLockShared(fd));
  } catch {
    return false;
  }
}
