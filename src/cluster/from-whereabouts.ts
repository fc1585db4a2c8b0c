/** The addresses that Whereabouts has given out, by its kinds: a pool of the same subnet excludes them. */
import { inside, invalid } from "../cni/decode.ts";
import {
  contains,
  formatAddress,
  formatPrefix,
  fromBigInt,
  isSameBytes,
  networkOf,
  nextAddress,
  overlap,
  parseAddress,
  parsePrefix,
  type Prefix,
  subnetsBetween,
  toBigInt,
} from "../net/address.ts";
import { type ImportedObject, objectsIn } from "./imported-kinds.ts";
import { objectAt, shownValue, textAt } from "./written-values.ts";

const GROUP = "whereabouts.cni.cncf.io";

export interface WhereaboutsUse {
  subnet: string;
  /** In order, each once. */
  used: Uint8Array[];
}

/** `subnet`: which of them, where the ranges of its pools are several. */
export function whereaboutsUse(document: unknown, subnet: string | undefined): WhereaboutsUse {
  const objects = objectsIn(document, GROUP), pools = objects.filter(({ kind }) => kind === "IPPool").map(poolIn);
  const wanted = subnet === undefined ? onlySubnet(pools) : parsePrefix(subnet);
  if (wanted === undefined) throw invalid("--subnet", `${shownValue(subnet)} is no subnet`);
  const used = pools.filter(({ range }) => overlap(range, wanted)).flatMap(({ addresses }) => addresses);
  for (const object of objects) {
    if (object.kind === "OverlappingRangeIPReservation") used.push(reservedIn(object));
    else if (object.kind !== "IPPool" && object.kind !== "NodeSlicePool") {
      throw invalid(inside(object.at, "kind"), `${shownValue(object.kind)} is none of Whereabouts' kinds`);
    }
  }
  const own = used.filter((address) => address.length === wanted.bytes.length && contains(wanted, address));
  const numbers = [...new Set(own.map(toBigInt))].sort((one, other) => (one < other ? -1 : 1));
  return {
    subnet: formatPrefix({ bytes: networkOf(wanted), bits: wanted.bits }),
    used: numbers.map((number) => fromBigInt(number, wanted.bytes.length)),
  };
}

interface PoolOfWhereabouts {
  range: Prefix;
  addresses: Uint8Array[];
}

function poolIn({ at, value }: ImportedObject): PoolOfWhereabouts {
  const where = inside(at, "spec"), spec = objectAt(value, at, "spec"), text = textAt(spec, where, "range");
  const written = parsePrefix(text);
  if (written === undefined) throw invalid(`${where}.range`, `${shownValue(text)} is no subnet`);
  const range = { bytes: networkOf(written), bits: written.bits };
  const allocations = spec["allocations"] === undefined ? {} : objectAt(spec, where, "allocations");
  // It counts from the address that is written, whatever the prefix is.
  const addresses = Object.keys(allocations).map((offset) => {
    const key = `${where}.allocations.${offset.slice(0, 40)}`;
    if (!/^\d{1,39}$/.test(offset)) throw invalid(key, `${shownValue(offset)} is no offset`);
    const number = toBigInt(written.bytes) + BigInt(offset), length = written.bytes.length;
    if (number >= 1n << BigInt(length * 8) || !contains(range, fromBigInt(number, length))) {
      throw invalid(key, `it is not in ${formatPrefix(range)}`);
    }
    return fromBigInt(number, length);
  });
  return { range, addresses };
}

function onlySubnet(pools: readonly PoolOfWhereabouts[]): Prefix {
  const ranges = [...new Map(pools.map(({ range }) => [formatPrefix(range), range])).values()];
  if (ranges.length === 1) return ranges[0]!;
  const names = ranges.slice(0, 20).map(formatPrefix).join(", ");
  throw invalid("--subnet", ranges.length === 0 ? "there is no IPPool" : `it says which: ${names}`);
}

/** Kubernetes has none that is longer. */
const LONGEST_NAME = 253;

/** `10.0.0.7`, `fd00--7`, or a network's name, a hyphen, and one of these. */
function reservedIn({ name, at }: ImportedObject): Uint8Array {
  for (let from = 0; from >= 0 && from < name.length && name.length <= LONGEST_NAME;) {
    const rest = name.slice(from), address = parseAddress(rest) ?? parseAddress(rest.replaceAll("-", ":"));
    if (address !== undefined) return address;
    const hyphen = name.indexOf("-", from);
    from = hyphen < 0 ? -1 : hyphen + 1;
  }
  throw invalid(inside(at, "metadata.name"), `${shownValue(name)} has no address in it`);
}

/** Neighbours as subnets: a list that people can read, and that a store takes. */
export function asSubnets(addresses: readonly Uint8Array[]): string[] {
  const runs: { first: Uint8Array; last: Uint8Array }[] = [];
  for (const address of addresses) {
    const run = runs.at(-1);
    if (run !== undefined && isSameBytes(nextAddress(run.last), address)) run.last = address;
    else runs.push({ first: address, last: address });
  }
  return runs.flatMap(({ first, last }) => subnetsBetween(first, last)).map((subnet) =>
    subnet.bits === subnet.bytes.length * 8 ? formatAddress(subnet.bytes) : formatPrefix(subnet)
  );
}
