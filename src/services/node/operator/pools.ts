/** `patchbay pool`: which pools a store has, whose their blocks are; a new one; one of which nothing more is claimed. */
import type { ClusterRecords } from "../../../cluster/findings.ts";
import { poolFrom } from "../../../cluster/pool-decoding.ts";
import { type ClusterPool, countBlocks, isSingle, plainBlockWith } from "../../../cluster/pool.ts";
import { overlapsOf, type PoolOverlap } from "../../../cluster/overlaps.ts";
import { poolKey, poolOf, type PoolRecord } from "../../../cluster/records.ts";
import { type BlockRun, runsOf } from "../../../cluster/runs.ts";
import { type InNoBlock, inNoBlock } from "../../../cluster/served.ts";
import { formatAddress, formatPrefix } from "../../../net/address.ts";
import { notDone } from "../not-done.ts";
import { changeNamed, changeStored, checkName, inCluster, recordsOf, refuseByHand, unknownName } from "./cluster.ts";

export interface PoolSummary {
  pool: string;
  layout: "flat" | "routed";
  state: "open" | "closed";
  ranges: { subnet: string; gateway?: string; first: string; last: string; blockSize: bigint; exclude: string[] }[];
  routes: ClusterPool["routes"];
  /** Only nodes with these labels claim of it. */
  labels: ClusterPool["labels"];
  spare: number;
  mostBlocks: number;
  blocks: { total: number; owned: number };
  /** Addresses that only who asks for them gets; each is a block of its own beside these. */
  singles: string[];
  /** Who has some. */
  nodes: string[];
}

export interface PoolList {
  store: string;
  /** False where people write it. */
  isWritable: boolean;
  pools: PoolSummary[];
  problems: readonly string[];
}

export function listPools(config: string | undefined): Promise<PoolList> {
  return inCluster(config, async ({ store }) => {
    const records = await recordsOf(store), { problems } = records;
    const pools = [...records.pools.values()].map(({ pool }) => summaryOf(pool, records));
    return { store: store.name, isWritable: store.isWritable, pools, problems };
  });
}

export interface ShownPool extends PoolSummary {
  /** Every block, with its neighbours of one owner. */
  runs: BlockRun[];
}

export function showPool(config: string | undefined, name: string): Promise<ShownPool> {
  return inCluster(config, async ({ store }) => {
    checkName("pool", name);
    // It throws where the pool is there and no pool.
    const found = await store.read(poolKey(name)), records = await recordsOf(store);
    const known = found && records.pools.get(name);
    if (known === undefined) throw unknownName("pool", name, records.pools.keys());
    return shownPool(known.pool, records);
  });
}

export function shownPool(pool: ClusterPool, records: ClusterRecords): ShownPool {
  const { birth } = records.pools.get(pool.name)!, { nodes } = records;
  return { ...summaryOf(pool, records), runs: runsOf({ pool, birth, blocks: blocksIn(records, pool.name), nodes }) };
}

function blocksIn({ blocks }: ClusterRecords, pool: string) {
  return blocks.filter(({ key }) => poolOf(key) === pool);
}

function summaryOf(pool: ClusterPool, records: ClusterRecords): PoolSummary {
  const owned = blocksIn(records, pool.name).filter(({ value }) => value.owner !== undefined);
  const blocks = owned.filter(({ value }) => !isSingle(value.index));
  return {
    pool: pool.name,
    layout: pool.layout,
    state: pool.isOpen ? "open" : "closed",
    ranges: pool.ranges.map(({ subnet, gateway, first, last, size, excluded }) => ({
      subnet: formatPrefix(subnet),
      ...gateway !== undefined && { gateway: formatAddress(gateway) },
      first: formatAddress(first),
      last: formatAddress(last),
      blockSize: size,
      exclude: excluded.map(formatPrefix),
    })),
    routes: pool.routes,
    labels: pool.labels,
    spare: pool.spare,
    mostBlocks: pool.mostBlocks,
    blocks: { total: countBlocks(pool), owned: blocks.length },
    singles: pool.singles.map(formatAddress),
    nodes: [...new Set(owned.map(({ value }) => value.owner!.node))].sort(),
  };
}

export interface AddedPool {
  store: string;
  pool: PoolSummary;
  overlaps: PoolOverlap[];
  inNoBlock: InNoBlock[];
  /** Single addresses that are in a block. */
  singlesInBlocks: string[];
  /** Who has blocks of an earlier pool of this name: nothing is claimed before they are given back. */
  nodesOfEarlier: string[];
}

export function addPool(
  config: string | undefined,
  name: string,
  value: Record<string, unknown>,
): Promise<AddedPool> {
  return inCluster(config, async (cluster) => {
    const pool = poolFrom(name, value), record = value as unknown as PoolRecord;
    refuseByHand(cluster, "pool", name);
    const records = await recordsOf(cluster.store);
    await changeStored<PoolRecord>(cluster, poolKey(name), (found, isRepeated) => {
      if (found === undefined) return record;
      if (isRepeated && JSON.stringify(found) === JSON.stringify(record)) return found;
      throw notDone(
        `pool ${name} is there already`,
        `'patchbay pool show ${name}' says what it has; ranges of a pool never change: add one of another name`,
      );
    });
    const others = [...records.pools.values()].filter((other) => other.pool.name !== name);
    const summary = summaryOf(pool, records);
    return {
      store: cluster.store.name,
      pool: summary,
      overlaps: others.flatMap((other) => overlapsOf(pool, other.pool)),
      inNoBlock: inNoBlock(pool),
      singlesInBlocks: pool.singles.filter((each) => plainBlockWith(pool, each) !== undefined).map(formatAddress),
      nodesOfEarlier: summary.nodes,
    };
  });
}

/** Whether something has changed. */
export function setPoolState(config: string | undefined, name: string, state: "open" | "closed"): Promise<boolean> {
  return inCluster(config, async (cluster) => {
    const isSo = (value: PoolRecord) => (value.state ?? "open") === state;
    const change = (value: PoolRecord) => isSo(value) ? value : { ...value, state };
    return !isSo(await changeNamed<PoolRecord>(cluster, "pool", name, change));
  });
}
