/**
 * The pools that this host may have blocks of. What a block is, never changes under its containers: a pool whose ranges are
 * another than they were, or that was deleted and made anew, is the earlier one here until its last block is given back.
 */
import { errorText, undefinedOnError } from "../../cni/error.ts";
import type { PoolOfBlocks } from "../../cluster/blocks.ts";
import type { Grant } from "../../cluster/effects.ts";
import { poolFrom } from "../../cluster/pool-decoding.ts";
import { birthOf, blockWith, type ClusterPool, countBlocks, isSingle, shapeOf } from "../../cluster/pool.ts";
import { poolKey, poolOf, type PoolRecord, type Stored } from "../../cluster/records.ts";
import { contains, formatAddress } from "../../net/address.ts";
import { type KeptPool, keptPool } from "./files.ts";

export interface NodePool extends PoolOfBlocks {
  kept: KeptPool;
  pool: ClusterPool;
  /** Why nothing is claimed of it, where it says so itself. */
  obstacle?: string;
  /** Its record cannot be read: somebody is about to mend it, and nothing is given back for that. */
  isUnclear?: true;
}

/** What the store has now, beside what is known here; `labels` are this node's. */
export function poolsOfNode(
  listed: readonly Stored<PoolRecord>[],
  known: readonly KeptPool[],
  grants: readonly Grant[],
  labels: Readonly<Record<string, string>>,
  problems: readonly string[] = [],
): NodePool[] {
  const inUse = new Set(grants.map(({ key }) => poolOf(key)));
  const now = listed.map(keptPool);
  const names = new Set([...now, ...known].map(({ name }) => name));
  return [...names].flatMap((name) => {
    const current = now.find((each) => each.name === name), earlier = known.find((each) => each.name === name);
    const isUsed = inUse.has(name);
    if (earlier === undefined || !isUsed) return current === undefined ? [] : openPool(current, undefined, labels);
    const unclear = problems.find((problem) => problem.startsWith(`${poolKey(name)} `));
    if (unclear !== undefined) {
      return openPool(earlier, unclear, labels).map((pool) => ({ ...pool, isUnclear: true as const }));
    }
    const change = current === undefined ? "it is deleted" : changeOf(earlier, current);
    return change === undefined ? openPool(current!, undefined, labels) : openPool(earlier, change, labels);
  });
}

/** Without the store: as it was. */
export function keptPools(known: readonly KeptPool[], labels: Readonly<Record<string, string>>): NodePool[] {
  return known.flatMap((kept) => openPool(kept, undefined, labels));
}

function openPool(
  kept: KeptPool,
  change: string | undefined,
  labels: Readonly<Record<string, string>>,
): NodePool[] {
  const pool = undefinedOnError(() => poolFrom(kept.name, kept.value));
  // The store has said so already: it is no record.
  if (pool === undefined) return [];
  const other = Object.entries(pool.labels).find(([key, label]) => labels[key] !== label);
  const obstacle = change ??
    (!pool.isOpen
      ? "it is closed"
      : other === undefined
      ? undefined
      : `it is for nodes with the label ${other[0]}=${other[1]}`);
  return [{ kept, pool, name: kept.name, birth: birthOf(kept.birth, pool), size: countBlocks(pool), obstacle }];
}

function changeOf(earlier: KeptPool, current: KeptPool): string | undefined {
  if (earlier.birth !== current.birth) {
    return "it was deleted and made anew, and this node has blocks of the earlier one";
  }
  try {
    const before = poolFrom(earlier.name, earlier.value), now = poolFrom(current.name, current.value);
    if (shapeOf(before) !== shapeOf(now)) {
      return "its ranges have become others, and this node has blocks of the earlier ones: make another pool instead";
    }
    const plain = before.singles.find((single) => isPlain(now, single));
    if (plain === undefined) return undefined;
    return `${
      formatAddress(plain)
    } is no longer in "singles", and a node may have it: put it there, or into "exclude"`;
  } catch (error) {
    return errorText(error);
  }
}

/** A node that has it as a single would not know that another gives it out. */
function isPlain(pool: ClusterPool, address: Uint8Array): boolean {
  const index = blockWith(pool, address);
  return index !== undefined && !isSingle(index) &&
    !pool.ranges.some(({ excluded }) => excluded.some((prefix) => contains(prefix, address)));
}
