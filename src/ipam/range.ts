/**
 * Ranges of addresses in network configurations: fills in defaults, and rejects mistakes with the texts of the reference
 * host-local plugin, which people search for and engines match. Pure.
 *
 * In this folder, code that every ADD runs has loops instead of callbacks, generators and regular expressions: in a
 * short-lived process the first use of each costs 10 to 100 µs.
 */
import { CniError, INVALID_CONFIG } from "../cni/error.ts";
import {
  compareAddresses,
  contains,
  formatAddress,
  formatPrefix,
  isMappedPrefix,
  lastOf,
  networkOf,
  nextAddress,
  parseAddress,
  parsePrefix,
  type Prefix,
  toBigInt,
} from "../net/address.ts";

/** As written in the configuration; the validator has checked the addresses. */
export interface RangeConf {
  subnet?: string;
  rangeStart?: string;
  rangeEnd?: string;
  gateway?: string;
}

/** Addresses from `start` to `end` inclusive, without the gateway. */
export interface Range {
  subnet: Prefix;
  start: Uint8Array;
  end: Uint8Array;
  gateway?: Uint8Array;
  /**
   * For a range that comes and goes: the addresses that stay, for which there is one index. An owner has one of all of them,
   * also one that is no longer in a range.
   */
  within?: Prefix;
}

/** Ranges of one family that do not overlap; an attachment gets one address of the set. */
export type RangeSet = readonly Range[];

export function isInRange(range: Range, address: Uint8Array): boolean {
  return contains(range.subnet, address) && compareAddresses(address, range.start) >= 0 &&
    compareAddresses(address, range.end) <= 0;
}

export function rangeOf(set: RangeSet, address: Uint8Array): Range | undefined {
  for (const range of set) if (isInRange(range, address)) return range;
  return undefined;
}

/** `10.1.0.1-10.1.0.254,10.2.0.1-10.2.0.254` */
export function formatRangeSet(set: RangeSet): string {
  return set.map(formatRange).join(",");
}

function formatRange({ start, end }: Range): string {
  return `${formatAddress(start)}-${formatAddress(end)}`;
}

/** The number of addresses that the range can allocate. */
export function rangeCapacity(range: Range): bigint {
  const { gateway } = range, hasGateway = gateway !== undefined && isInRange(range, gateway);
  return toBigInt(range.end) - toBigInt(range.start) + (hasGateway ? 0n : 1n);
}

/** The number of addresses that the set can allocate. */
export function capacityOf(set: RangeSet): bigint {
  let capacity = 0n;
  for (const range of set) capacity += rangeCapacity(range);
  return capacity;
}

/** Every set with defaults. Throws a CniError of code 7 when a range, a set or their combination is invalid. */
export function planRangeSets(sets: readonly (readonly RangeConf[])[], cniVersion: string): RangeSet[] {
  if (sets.length === 0) throw invalid("no IP ranges specified");
  const planned: RangeSet[] = [];
  for (const set of sets) {
    try {
      planned.push(planRangeSet(set));
    } catch (error) {
      const { message, details } = error as CniError;
      throw invalid(`invalid range set ${planned.length}: ${message}`, details);
    }
  }
  if (planned.length > 1) checkCombination(planned, cniVersion);
  return planned;
}

function planRangeSet(set: readonly RangeConf[]): RangeSet {
  if (set.length === 0) throw invalid("empty range set");
  const ranges: Range[] = [];
  for (const conf of set) ranges.push(planRange(conf));
  for (const range of ranges) {
    if (range.start.length !== ranges[0]!.start.length) throw invalid("mixed address families");
  }
  for (let i = 0; i < ranges.length; i++) {
    for (let j = i + 1; j < ranges.length; j++) {
      const one = ranges[i]!, other = ranges[j]!;
      if (overlap(one, other)) throw invalid(`subnets ${formatRange(one)} and ${formatRange(other)} overlap`);
    }
  }
  return ranges;
}

function checkCombination(sets: readonly RangeSet[], cniVersion: string): void {
  const ofFamily = (length: number) => sets.filter(([range]) => range!.start.length === length).length;
  if ((ofFamily(4) > 1 || ofFamily(16) > 1) && /^0\.[12]\./.test(cniVersion)) {
    throw invalid(`CNI version ${cniVersion} does not support more than 1 address per family`);
  }
  for (let i = 0; i < sets.length; i++) {
    for (let j = i + 1; j < sets.length; j++) {
      const isShared = sets[i]!.some((one) => sets[j]!.some((other) => overlap(one, other)));
      if (isShared) throw invalid(`range set ${i} overlaps with ${j}`);
    }
  }
}

function planRange(conf: RangeConf): Range {
  if (!conf.subnet) throw invalid("IP <nil> not v4 nor v6", 'a range needs "subnet"');
  const subnet = parsePrefix(conf.subnet);
  if (subnet === undefined) throw invalid(`invalid CIDR address: ${conf.subnet}`);
  // The reference rejects IPv4-mapped prefixes (::ffff:10.0.0.0/120): an IPv4 address with an IPv6 mask.
  if (isMappedPrefix(conf.subnet)) throw invalid("IPNet IP and Mask version mismatch");
  const text = formatPrefix(subnet);
  const network = networkOf(subnet);
  if (subnet.bits > network.length * 8 - 2) throw invalid(`Network ${text} too small to allocate from`);
  if (compareAddresses(subnet.bytes, network) !== 0) {
    throw invalid(
      `Network has host bits set. For a subnet mask of length ${subnet.bits} ` +
        `the network address is ${formatAddress(network)}`,
    );
  }
  const first = nextAddress(network);
  const gateway = conf.gateway ? addressOf(conf.gateway) : first;
  if (!contains(subnet, gateway)) throw invalid(`gateway ${formatAddress(gateway)} not in network ${text}`);
  const start = conf.rangeStart ? addressOf(conf.rangeStart) : first;
  const end = conf.rangeEnd ? addressOf(conf.rangeEnd) : undefined;
  const startsInside = contains(subnet, start) && (end === undefined || compareAddresses(start, end) <= 0);
  if (conf.rangeStart && !startsInside) throw invalid(`RangeStart ${formatAddress(start)} not in network ${text}`);
  if (end !== undefined && !(contains(subnet, end) && compareAddresses(start, end) <= 0)) {
    throw invalid(`RangeEnd ${formatAddress(end)} not in network ${text}`);
  }
  const last = end ?? lastUsableOf(subnet);
  if (compareAddresses(start, last) > 0) {
    throw invalid(`RangeStart ${formatAddress(start)} is after RangeEnd ${formatAddress(last)} in network ${text}`);
  }
  return { subnet, start, end: last, gateway };
}

/** The address before IPv4's broadcast address; IPv6 has none. */
function lastUsableOf(subnet: Prefix): Uint8Array {
  const last = lastOf(subnet);
  if (last.length === 4) last[3]! &= 0xfe;
  return last;
}

function addressOf(text: string): Uint8Array {
  const address = parseAddress(text);
  if (address === undefined) throw invalid(`invalid IP address: ${text}`);
  return address;
}

function overlap(one: Range, other: Range): boolean {
  return one.start.length === other.start.length && compareAddresses(one.start, other.end) <= 0 &&
    compareAddresses(other.start, one.end) <= 0;
}

function invalid(message: string, details = ""): CniError {
  return new CniError(INVALID_CONFIG, message, details);
}
