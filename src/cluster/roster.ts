/**
 * A cluster written by hand: files of pools, and a file for each node that says which blocks are its own. Every host has the
 * same files; nothing is claimed.
 */
import { parseAddress } from "../net/address.ts";
import { errorText } from "../cni/error.ts";
import { isObject } from "../cni/json.ts";
import { poolFrom } from "./pool-decoding.ts";
import { blockWith, type ClusterPool, countBlocks, isSingle } from "./pool.ts";

export interface RosterFile {
  /** The pool's or the node's. */
  name: string;
  path: string;
  text: string;
}

export interface Roster {
  pools: ReadonlyMap<string, ClusterPool>;
  /** By node and pool. */
  blocks: ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>;
}

/** With any problem, nothing of it is applied: a file that is half copied would give addresses twice. */
export function rosterFrom(
  poolFiles: readonly RosterFile[],
  nodeFiles: readonly RosterFile[],
): Roster | { problems: string[] } {
  const problems: string[] = [], pools = new Map<string, ClusterPool>();
  const reading = (path: string, work: () => void) => {
    try {
      work();
    } catch (error) {
      problems.push(`${path}: ${errorText(error)}`);
    }
  };
  for (const { name, path, text } of poolFiles) {
    reading(path, () => void pools.set(name, poolFrom(name, JSON.parse(text))));
  }
  const blocks = new Map<string, Map<string, number[]>>(), owners = new Map<string, string>();
  for (const { name, path, text } of nodeFiles) {
    reading(path, () => {
      const own = blocksIn(JSON.parse(text), pools);
      blocks.set(name, own);
      for (const [pool, indices] of own) {
        for (const index of indices) claimBy(owners, { pool, index, path }, problems);
      }
    });
  }
  return problems.length > 0 ? { problems } : { pools, blocks };
}

function claimBy(
  owners: Map<string, string>,
  { pool, index, path }: { pool: string; index: number; path: string },
  problems: string[],
): void {
  const key = `block ${index} of pool ${pool}`, other = owners.get(key);
  if (other !== undefined) problems.push(`${path}: ${key} stands in ${other}, too`);
  else owners.set(key, path);
}

/** `{ "blocks": { "POOL": [0, "4-7"] } }` */
function blocksIn(value: unknown, pools: ReadonlyMap<string, ClusterPool>): Map<string, number[]> {
  const lists = isObject(value) ? value["blocks"] : undefined;
  if (!isObject(lists)) throw new Error('"blocks" is missing: { "blocks": { "POOL": [0, "4-7"] } }');
  const other = Object.keys(value as object).find((key) => key !== "blocks");
  if (other !== undefined) throw new Error(`"${other}" is not known`);
  return new Map(
    Object.entries(lists).map(([name, list]) => {
      const pool = pools.get(name), at = `"blocks.${name}"`;
      if (pool === undefined) throw new Error(`${at}: there is no such pool`);
      if (!Array.isArray(list)) throw new Error(`${at}: ${JSON.stringify(list)} is no list`);
      return [name, list.flatMap((item) => indicesIn(item, at, pool))];
    }),
  );
}

function indicesIn(item: unknown, at: string, pool: ClusterPool): number[] {
  const address = typeof item === "string" ? parseAddress(item) : undefined, count = countBlocks(pool);
  if (address !== undefined) {
    const index = blockWith(pool, address);
    if (index !== undefined && isSingle(index)) return [index];
    throw new Error(`${at}: ${JSON.stringify(item)} is none of the pool's "singles"`);
  }
  const [, from, to = from] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(String(item)) ?? [];
  const first = Number(from), last = Number(to), isWhole = typeof item === "number" || typeof item === "string";
  if (from === undefined || !isWhole || last < first) {
    throw new Error(`${at}: ${JSON.stringify(item)} is neither a block nor "4-7"`);
  }
  if (last >= count) throw new Error(`${at}: ${last} is behind the last block, ${count - 1}`);
  return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
}
