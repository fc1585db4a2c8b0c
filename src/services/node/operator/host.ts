/** What this host has of a cluster, whatever the store says: what its agent keeps and serves, leases, containers. */
import type { BootNotes, Grant, KeptState } from "../../../cluster/effects.ts";
import type { ClusterRecords } from "../../../cluster/findings.ts";
import type { Self } from "../../../cluster/node.ts";
import { blockWith, countBlocks, isSingle } from "../../../cluster/pool.ts";
import { blockKey, indexOf, poolOf } from "../../../cluster/records.ts";
import { addressesOf } from "../../../cluster/runs.ts";
import { countServed } from "../../../cluster/served.ts";
import { agentLockPath, type ServedPool } from "../../../cluster/served-file.ts";
import { parseAddress } from "../../../net/address.ts";
import { O_RDONLY, whileOpen } from "../../../ffi/files.ts";
import { secondsSinceBoot } from "../../../ffi/clock.ts";
import { tryLockShared } from "../../../process/lock.ts";
import { stateDirectory } from "../../../process/state-directory.ts";
import { openExistingState } from "../../../process/state-file.ts";
import { NodeFiles } from "../files.ts";
import { DATA_DIRECTORY } from "../paths.ts";
import { keptPools, type NodePool } from "../pools.ts";
import { countLeases } from "../use.ts";

export interface HostFacts {
  self: Self;
  files: NodeFiles;
  held: KeptState;
  notes: BootNotes;
  pools: NodePool[];
  served: ServedPool[];
  isAgentRunning: boolean;
  secondsSinceSync?: number;
}

/** `records`: for pools that the agent does not keep itself, such as those of a roster. */
export function hostFacts(self: Self, dataDirectory: string | undefined, records?: ClusterRecords): HostFacts {
  const files = new NodeFiles(dataDirectory ?? DATA_DIRECTORY, stateDirectory());
  const kept = keptPools(files.readPools(), {}), known = new Set(kept.map(({ name }) => name));
  const others = [...records?.pools ?? []].filter(([name]) => !known.has(name)).map(([name, { pool, birth }]) => ({
    kept: { name, birth, value: { layout: pool.layout, ranges: [] } },
    pool,
    name,
    birth,
    size: countBlocks(pool),
  }));
  const synced = files.readSync();
  return {
    self,
    files,
    held: files.readHeld(),
    notes: files.readNotes(),
    pools: [...kept, ...others],
    served: files.servedPools().flatMap((pool) => files.readServed(pool) ?? []),
    isAgentRunning: isLocked(agentLockPath(files.stateDirectory)),
    ...synced !== undefined && { secondsSinceSync: Math.max(0, secondsSinceBoot() - synced) },
  };
}

/** It is let go of at once; an agent that starts in this moment is started again. */
function isLocked(path: string): boolean {
  const lock = openExistingState(path, O_RDONLY);
  return lock !== undefined && whileOpen(lock.fd, (fd) => !tryLockShared(fd));
}

export interface OwnBlock {
  block: number;
  /** An address that only who asks for it gets. */
  isSingle?: true;
  addresses: string[];
  state: "served" | "ripening" | "closing" | "unknown";
  /** How many containers have an address of it. */
  leased: number;
  /** For how many it has some; none unless it is served. */
  free: number;
}

export interface OwnPool {
  pool: string;
  blocks: OwnBlock[];
  /** Why no further block comes to it. */
  obstacle?: string;
  /** Each block of the pool has an owner. */
  isFull?: true;
  silent?: ServedPool["silent"];
}

/** By pool, in the order of blocks. */
export function ownPools(
  { pools, served, held, notes, files }: HostFacts,
  byHand: ClusterRecords | undefined,
): OwnPool[] {
  const leased = countLeases(pools, files.leases);
  return pools.flatMap((pool): OwnPool[] => {
    const file = served.find((each) => each.pool === pool.name), { name } = pool;
    const states = byHand === undefined
      ? held.grants.filter(({ key }) => poolOf(key) === name).map((grant) =>
        [grant.key, stateOf(grant, notes)] as const
      )
      : rosterBlocks(byHand, name, file);
    if (states.length === 0 && file === undefined) return [];
    const foreign = (file?.foreign ?? []).map((address) => blockWith(pool.pool, parseAddress(address)!));
    const foreignIn = (block: number) => foreign.filter((index) => index === block).length;
    const blocks = states.map(([key, state]): OwnBlock => {
      const block = indexOf(key), count = leased.get(key) ?? 0;
      const all = isSingle(block) ? 1 : countServed(pool.pool, [block]),
        free = Math.max(0, all - count - foreignIn(block));
      const single = isSingle(block) && { isSingle: true } as const;
      const addresses = addressesOf(pool.pool, block, block);
      return { block, ...single, addresses, state, leased: count, free: state === "served" ? free : 0 };
    });
    const { obstacle, isFull, silent } = file ?? {};
    return [{
      pool: name,
      blocks: blocks.sort((one, other) => one.block - other.block),
      ...obstacle !== undefined && { obstacle },
      ...isFull && { isFull },
      ...silent !== undefined && { silent },
    }];
  });
}

function stateOf({ state, claim }: Grant, { ripe }: BootNotes): OwnBlock["state"] {
  if (state !== "held") return state;
  return ripe.includes(claim) ? "served" : "ripening";
}

/** The agent serves what the files give to this host, or nothing of them. */
function rosterBlocks(records: ClusterRecords, pool: string, file: ServedPool | undefined) {
  if (file === undefined) return [];
  const own = records.blocks.filter(({ key, value }) => poolOf(key) === pool && value.owner?.node === file.node);
  const isServed = file.blocks.served === own.length;
  return own.map(({ value }) => [blockKey(pool, value.index), isServed ? "served" : "ripening"] as const);
}
