/** A pool as a person, or another program, has written it: each refusal names the key and the value. */
import { invalid, list, missing } from "../cni/decode.ts";
import {
  contains,
  formatAddress,
  formatPrefix,
  fromBigInt,
  lastOf,
  parseAddress,
  parsePrefix,
  type Prefix,
  toBigInt,
} from "../net/address.ts";
import { isPoolName } from "./pool-name.ts";
import {
  addressAtKey,
  knownAt,
  objectAt,
  shownValue,
  subnetAt,
  textAt,
  type WrittenValues,
} from "./written-values.ts";
import { type ClusterPool, countBlocks, MOST_SINGLES, offsetOf, type PoolRange, type PoolRoute } from "./pool.ts";

/** As many as ADD reads without being slower for it. */
const MOST_BLOCKS_OF_NODE = 1024;

const POOL_KEYS = ["layout", "state", "ranges", "singles", "routes", "nodes", "spare", "mostBlocks", "probe"];
const RANGE_KEYS = ["cidr", "gateway", "from", "to", "blockSize", "blockLength", "exclude"];

export function poolFrom(name: string, value: unknown): ClusterPool {
  if (!isPoolName(name)) {
    throw invalid("name", `${JSON.stringify(name)} is no name of a pool: small letters, digits, dots and hyphens`);
  }
  const record = knownAt(value, "", POOL_KEYS, "pool");
  const layout = oneOf(record, "layout", ["flat", "routed"]),
    state = oneOf(record, "state", ["open", "closed"], "open");
  const ranges = list(record["ranges"] ?? [], "ranges", (each, at) => rangeFrom(each, at, layout));
  if (ranges.length === 0) throw missing("ranges");
  const lengths = new Set(ranges.map(({ first }) => first.length));
  if (ranges.length > 2 || lengths.size < ranges.length) throw invalid("ranges", "one for each family at most");
  const pool: ClusterPool = {
    name,
    layout,
    isOpen: state === "open",
    ranges,
    singles: list(record["singles"] ?? [], "singles", (each, at) => singleFrom(each, at, ranges)),
    routes: list(record["routes"] ?? [], "routes", routeFrom),
    labels: labelsFrom(record["nodes"] ?? { matchLabels: {} }),
    spare: countFrom(record, "spare", 0, 1),
    mostBlocks: countFrom(record, "mostBlocks", 1, MOST_BLOCKS_OF_NODE),
    probedLink: record["probe"] === undefined ? undefined : probedLinkFrom(record["probe"], layout),
  };
  if (countBlocks(pool) === 0) throw invalid("ranges", "they are smaller than one block");
  if (pool.singles.length > 0 && layout === "routed") {
    throw invalid("singles", "each address of a routed pool is in a block");
  }
  if (pool.singles.length > MOST_SINGLES) throw invalid("singles", `there are more than ${MOST_SINGLES}`);
  return pool;
}

function rangeFrom(value: unknown, at: string, layout: ClusterPool["layout"]): PoolRange {
  const record = knownAt(value, at, RANGE_KEYS), subnet = subnetAt(record, at, "cidr");
  const addressAt = (key: string) => addressIn(record, at, key, subnet);
  const gateway = addressAt("gateway"), from = addressAt("from"), to = addressAt("to");
  const excluded = list(record["exclude"] ?? [], `${at}.exclude`, (each, where) => excludedFrom(each, where));
  const size = sizeFrom(record, at, { layout, subnet });
  if (layout === "routed") {
    for (const key of ["gateway", "from", "to"]) {
      if (record[key] !== undefined) {
        throw invalid(`${at}.${key}`, "each block of a routed pool is a subnet of its own");
      }
    }
    return { subnet, first: subnet.bytes, last: lastOf(subnet), size, excluded };
  }
  const hosts = hostsOf(subnet), first = from ?? hosts.first, last = to ?? hosts.last;
  if (toBigInt(first) > toBigInt(last)) {
    throw invalid(`${at}.to`, `${formatAddress(last)} is before ${formatAddress(first)}`);
  }
  return { subnet, gateway, first, last, size, excluded };
}

/** Without the addresses of the subnet itself, and of all its hosts. */
function hostsOf(subnet: Prefix): { first: Uint8Array; last: Uint8Array } {
  const length = subnet.bytes.length, last = lastOf(subnet), bits = length * 8 - subnet.bits;
  if (bits < 2) return { first: subnet.bytes, last };
  const isV4 = length === 4;
  return {
    first: fromBigInt(toBigInt(subnet.bytes) + 1n, length),
    last: isV4 ? fromBigInt(toBigInt(last) - 1n, length) : last,
  };
}

function sizeFrom(record: WrittenValues, at: string, { layout, subnet }: { layout: string; subnet: Prefix }): bigint {
  const key = layout === "flat" ? "blockSize" : "blockLength",
    other = layout === "flat" ? "blockLength" : "blockSize";
  const number = record[key], most = subnet.bytes.length * 8;
  if (record[other] !== undefined) throw invalid(`${at}.${other}`, `a ${layout} pool has ${key}`);
  if (number === undefined) throw missing(`${at}.${key}`);
  const isWhole = typeof number === "number" && Number.isInteger(number);
  if (layout === "flat") {
    if (!isWhole || number < 1 || number > 65536) throw refused(at, key, number, "is no count from 1 to 65536");
    return BigInt(number);
  }
  if (!isWhole || number <= subnet.bits || number > most) {
    throw refused(at, key, number, `is no length of a prefix from ${subnet.bits + 1} to ${most}`);
  }
  return 1n << BigInt(most - number);
}

/** Two families of one number would be one key. */
function singleFrom(value: unknown, at: string, ranges: readonly PoolRange[]): Uint8Array {
  const address = typeof value === "string" ? parseAddress(value) : undefined;
  if (address === undefined) throw invalid(at, `${shownValue(value)} is no address`);
  const range = ranges.find(({ subnet }) => subnet.bytes.length === address.length && contains(subnet, address));
  if (range === undefined) throw invalid(at, `${shownValue(value)} is in none of the subnets`);
  if (range !== ranges[0]) throw invalid(at, `${shownValue(value)} is not of the first range's family`);
  if (offsetOf(range, address) === undefined) {
    throw invalid(at, `${shownValue(value)} is too far behind the subnet's first`);
  }
  return address;
}

function routeFrom(value: unknown, at: string): PoolRoute {
  const record = knownAt(value, at, ["dst", "gw"]), dst = textAt(record, at, "dst");
  subnetAt(record, at, "dst");
  if (record["gw"] === undefined) return { dst };
  addressAtKey(record, at, "gw");
  return { dst, gw: textAt(record, at, "gw") };
}

/** In a routed pool nobody else can have the addresses: nobody routes them elsewhere. */
function probedLinkFrom(value: unknown, layout: ClusterPool["layout"]): string {
  const record = knownAt(value, "probe", ["link"]);
  if (layout === "routed") throw invalid("probe", "the blocks of a routed pool are no link's");
  const link = textAt(record, "probe", "link");
  if (!/^[^\s/:]{1,15}$/.test(link)) throw refused("probe", "link", link, "is no name of a link");
  return link;
}

function labelsFrom(value: unknown): Record<string, string> {
  const labels = objectAt(knownAt(value, "nodes", ["matchLabels"]), "nodes", "matchLabels");
  for (const [key, label] of Object.entries(labels)) {
    if (typeof label !== "string") throw refused("nodes.matchLabels", key, label, "is no text");
  }
  return labels as Record<string, string>;
}

function countFrom(record: WrittenValues, key: string, least: number, usual: number): number {
  const found = record[key] ?? usual;
  if (Number.isInteger(found) && (found as number) >= least && (found as number) <= MOST_BLOCKS_OF_NODE) {
    return found as number;
  }
  throw invalid(key, `${shownValue(found)} is no count from ${least} to ${MOST_BLOCKS_OF_NODE}`);
}

function addressIn(record: WrittenValues, at: string, key: string, subnet: Prefix): Uint8Array | undefined {
  if (record[key] === undefined) return undefined;
  const address = addressAtKey(record, at, key);
  if (contains(subnet, address)) return address;
  throw refused(at, key, record[key], `is not in ${formatPrefix(subnet)}`);
}

function excludedFrom(value: unknown, at: string): Prefix {
  const text = typeof value === "string" ? value : "", address = parseAddress(text);
  const prefix = address === undefined ? parsePrefix(text) : { bytes: address, bits: address.length * 8 };
  if (prefix === undefined) throw invalid(at, `${shownValue(value)} is neither an address nor a subnet`);
  return prefix;
}

function oneOf<Word extends string>(record: WrittenValues, key: string, words: readonly Word[], usual?: Word): Word {
  const found = record[key] ?? usual;
  if (found === undefined) throw missing(key);
  if (words.includes(found as Word)) return found as Word;
  throw invalid(key, `${shownValue(found)} is none of ${words.join(", ")}`);
}

function refused(at: string, key: string, value: unknown, why: string): Error {
  return invalid(`${at}.${key}`, `${shownValue(value)} ${why}`);
}
