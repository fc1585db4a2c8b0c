/**
 * Blocks that this host claims by their numbers, because containers here have addresses of them already: by the protocol, in
 * place of the agent, which must not run meanwhile.
 */
import { claimThis } from "../../../cluster/blocks.ts";
import { StoreSilent } from "../../../cluster/effects.ts";
import { ClusterNode, type Self } from "../../../cluster/node.ts";
import {
  type BlockRecord,
  indexOf,
  isOwnedBy,
  nodeKey,
  poolOf,
  type PoolRecord,
  type Stored,
} from "../../../cluster/records.ts";
import type { ClusterStore } from "../../../cluster/store.ts";
import { ProtocolDriver } from "../driving.ts";
import type { NodeFiles } from "../files.ts";
import { type NodePool, poolsOfNode } from "../pools.ts";
import { notDone } from "../not-done.ts";
import { AGENT_DELAYS } from "../run.ts";
import { obstacleOf } from "../serving.ts";
import { type AttachedAddresses, countUse } from "../use.ts";

export interface ClaimingHost {
  self: Self;
  store: ClusterStore;
  files: NodeFiles;
  attachedAddresses: AttachedAddresses;
  say(text: string): void;
}

/** Who has a block in the store; undefined when nobody has. Decides nothing. */
export async function ownerOf(store: ClusterStore, key: string): Promise<string | undefined> {
  const found = await store.read(key) as Stored<BlockRecord> | undefined;
  return found?.value.owner?.node;
}

/** Before anything is written. */
export async function refuseBlocksOfOthers(store: ClusterStore, self: Self, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const owner = await ownerOf(store, key);
    if (owner === undefined || owner === self.node) continue;
    throw notDone(
      `${key} is ${owner}'s in ${store.name}, and this host is ${self.node}`,
      "'patchbay ipam show --all' says whose the blocks are",
    );
  }
}

/** All of them, or an error with the first one that is not to be had: the others stay claimed, and it may be repeated. */
export async function claimOwn(host: ClaimingHost, keys: readonly string[]): Promise<void> {
  const { self, store, files, attachedAddresses, say } = host;
  const { records } = await store.list("pool");
  const pools = poolsOfNode(records as Stored<PoolRecord>[], files.readPools(), files.readHeld().grants, {});
  files.savePools(pools.map(({ kept }) => kept));
  const driver = new ProtocolDriver(store, {
    save: (held) => files.saveHeld(held),
    note: (notes) => files.saveNotes(notes),
    usedBlocks: () => [...countUse(pools, files.leases, attachedAddresses, say).keys()],
  });
  const node = new ClusterNode(self, AGENT_DELAYS, files.readHeld(), files.readNotes());
  await driver.run(node.join());
  const obstacle = node.standing === "joined" ? undefined : obstacleOf(node, driver) ?? `node ${self.node} is away`;
  if (obstacle !== undefined) throw new Error(`${nodeKey(self.node)}: nothing is claimed: ${obstacle}`);
  for (const key of keys) {
    const pool = pools.find(({ name }) => name === poolOf(key));
    if (pool === undefined) throw new Error(`pool ${poolOf(key)} is not in ${store.name}`);
    await claimOne(node, driver, pool, { key, store });
  }
}

async function claimOne(
  node: ClusterNode,
  driver: ProtocolDriver,
  pool: NodePool,
  { key, store }: { key: string; store: ClusterStore },
): Promise<void> {
  const { held, self } = node;
  if (held.grants.some((grant) => grant.key === key)) return;
  const outcome = await driver.run(claimThis(node, pool, indexOf(key)));
  if (outcome === true) return;
  if (outcome === undefined) {
    const why = obstacleOf(node, driver) ?? driver.refusal ?? "another was faster, or somebody deletes it";
    throw new StoreSilent(`${key} is not claimed: ${why}; repeat the command`);
  }
  // Claimed by a run that was killed before it wrote it down, or when this node was in this store before.
  const found = await store.read(key) as Stored<BlockRecord> | undefined;
  if (found === undefined || !isOwnedBy(found.value, self.node, held.generation)) {
    throw new Error(
      `${key} is ${outcome.owner}'s in ${store.name}, of another generation: 'patchbay node check' says more`,
    );
  }
  const state = node.held.wipedIn === self.boot ? "unknown" : "held", { claim } = found.value.owner!;
  await driver.run(node.keepGrant({ key, claim, state, version: found.version }));
}
