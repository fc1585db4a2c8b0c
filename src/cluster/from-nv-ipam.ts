/** Pools of nv-ipam as pools of ours: blocks of the same sizes that begin at the same addresses; and whose they are there. */
import { inside, invalid } from "../cni/decode.ts";
import { formatAddress, formatPrefix, fromBigInt, lastOf, subnetsBetween, toBigInt } from "../net/address.ts";
import { type ImportedObject, objectsIn } from "./imported-kinds.ts";
import { poolFrom } from "./pool-decoding.ts";
import { blockWith, type ClusterPool, piecesOf } from "./pool.ts";
import {
  addressAtKey,
  listAt,
  numberAt,
  objectAt,
  shownValue,
  subnetAt,
  textAt,
  type WrittenValues,
} from "./written-values.ts";

const GROUP = "nv-ipam.nvidia.com", MOST_EXCLUDES = 4096;

export interface ImportedPool {
  name: string;
  /** As `patchbay pool add` takes it; closed. */
  document: Record<string, unknown>;
  /** By node. */
  blocks: ReadonlyMap<string, number>;
  /** What is otherwise there than here, for people. */
  notes: string[];
}

/** `name`: which pool, where there are several. */
export function nvIpamPool(document: unknown, name: string | undefined): ImportedPool {
  const all = objectsIn(document, GROUP);
  const found = name === undefined ? all : all.filter((object) => object.name === name);
  if (found.length !== 1) {
    const names = all.slice(0, 20).map((object) => object.name).join(", ");
    throw invalid(
      "--pool",
      found.length === 0 ? `${shownValue(name)} is none of ${names}` : `it says which: ${names}`,
    );
  }
  const [object] = found as [ImportedObject], { kind, at } = object;
  if (kind === "IPPool") return flatPool(object);
  if (kind === "CIDRPool") return routedPool(object);
  throw invalid(inside(at, "kind"), `${shownValue(kind)} is neither IPPool nor CIDRPool`);
}

/** The first block begins behind the subnet's own address. */
function flatPool(object: ImportedObject): ImportedPool {
  const { at, value } = object, where = inside(at, "spec"), spec = objectAt(value, at, "spec");
  const subnet = subnetAt(spec, where, "subnet"), size = numberAt(spec, where, "perNodeBlockSize");
  const first = fromBigInt(toBigInt(subnet.bytes) + 1n, subnet.bytes.length);
  const gateway = given(spec, "gateway") ? { gateway: formatAddress(addressAtKey(spec, where, "gateway")) } : {};
  const range = {
    cidr: formatPrefix(subnet),
    ...gateway,
    from: formatAddress(first),
    blockSize: size,
    ...excludedIn(spec, where, "exclusions"),
  };
  const notes = given(spec, "nodeSelector") ? [NO_SELECTOR] : [];
  return finished(object, { layout: "flat", state: "closed", ranges: [range] }, notes, (allocation, on) => {
    const start = addressAtKey(allocation, on, "startIP"), end = addressAtKey(allocation, on, "endIP");
    return { first: start, last: end };
  });
}

function routedPool(object: ImportedObject): ImportedPool {
  const { at, value } = object, where = inside(at, "spec"), spec = objectAt(value, at, "spec");
  const cidr = subnetAt(spec, where, "cidr"), blockLength = numberAt(spec, where, "perNodeNetworkPrefix");
  const notes = given(spec, "nodeSelector") ? [NO_SELECTOR] : [];
  const index = given(spec, "gatewayIndex") ? numberAt(spec, where, "gatewayIndex") : undefined;
  if (index === undefined) notes.push("it has no gateway there; here each block's first address is its gateway");
  else if (index !== 1) {
    throw invalid(`${where}.gatewayIndex`, `${index}: here each block's first address, 1, is its gateway`);
  }
  for (const key of ["perNodeExclusions", "routes"]) {
    if (listAt(spec, where, key).length > 0) notes.push(`its ${key} are to be written by hand: "exclude", "routes"`);
  }
  const range = { cidr: formatPrefix(cidr), blockLength, ...excludedIn(spec, where, "exclusions") };
  return finished(object, { layout: "routed", state: "closed", ranges: [range] }, notes, (allocation, on) => {
    const prefix = subnetAt(allocation, on, "prefix");
    return { first: prefix.bytes, last: lastOf(prefix) };
  });
}

const NO_SELECTOR = 'its nodeSelector is to be written by hand: "nodes": { "matchLabels": … }';

function given(spec: WrittenValues, key: string): boolean {
  return spec[key] !== undefined && spec[key] !== null && spec[key] !== "";
}

interface Extent {
  first: Uint8Array;
  last: Uint8Array;
}

function finished(
  { at, value, name }: ImportedObject,
  document: Record<string, unknown>,
  notes: string[],
  extentOf: (allocation: WrittenValues, on: string) => Extent,
): ImportedPool {
  const pool = poolFrom(name, document), blocks = new Map<string, number>(), owners = new Map<number, string>();
  const status = value["status"] === undefined ? {} : objectAt(value, at, "status");
  const where = inside(at, "status.allocations");
  for (const [position, allocation] of listAt(status, inside(at, "status"), "allocations").entries()) {
    const on = `${where}[${position}]`, node = textAt(allocation, on, "nodeName");
    const index = blockOf(pool, extentOf(allocation, on), on), other = owners.get(index);
    if (other !== undefined) throw invalid(on, `${shownValue(node)} has the block of ${shownValue(other)}`);
    if (blocks.has(node)) throw invalid(on, `${shownValue(node)} has two blocks`);
    owners.set(index, node);
    blocks.set(node, index);
  }
  return { name, document, blocks, notes };
}

function blockOf(pool: ClusterPool, { first, last }: Extent, on: string): number {
  const index = blockWith(pool, first), [piece] = index === undefined ? [] : piecesOf(pool, index);
  const isWhole = piece !== undefined && toBigInt(piece.first) === toBigInt(first) &&
    toBigInt(piece.last) === toBigInt(last);
  if (isWhole) return index!;
  throw invalid(on, `${formatAddress(first)}-${formatAddress(last)} is no block of the pool`);
}

function excludedIn(spec: WrittenValues, where: string, key: string): { exclude?: string[] } {
  const exclude = listAt(spec, where, key).flatMap((each, position) => {
    const on = `${where}.${key}[${position}]`;
    const first = addressAtKey(each, on, "startIP"), last = addressAtKey(each, on, "endIP");
    if (first.length !== last.length || toBigInt(last) < toBigInt(first)) {
      throw invalid(on, `${formatAddress(last)} is before ${formatAddress(first)}`);
    }
    return subnetsBetween(first, last).map(formatPrefix);
  });
  if (exclude.length > MOST_EXCLUDES) throw invalid(`${where}.${key}`, `they are more than ${MOST_EXCLUDES} subnets`);
  return exclude.length === 0 ? {} : { exclude };
}
