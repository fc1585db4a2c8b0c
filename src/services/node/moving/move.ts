/**
 * `patchbay node move`: this host goes over from one store to another, with its blocks and the leases that are in them.
 *
 * Into a store that nodes claim in, each claims its own blocks under their numbers, while nothing else is claimed of the pool:
 * it is closed until the last has come. Into files, they must say exactly what the store says: so nobody else has it there.
 */
import { nodeKey, poolKey, poolOf } from "../../../cluster/records.ts";
import type { ClusterRecords } from "../../../cluster/findings.ts";
import { shapeOf } from "../../../cluster/pool.ts";
import type { Self } from "../../../cluster/node.ts";
import { formatAddress } from "../../../net/address.ts";
import type { NodeFiles } from "../files.ts";
import { inCluster, type OpenCluster, recordsOf } from "../operator/cluster.ts";
import { notDone } from "../not-done.ts";
import { lockedFiles, type NodeOptions } from "../run.ts";
import { thisNode } from "../self.ts";
import { claimOwn, ownerOf, refuseBlocksOfOthers } from "./own-claims.ts";

export interface MoveOptions extends NodeOptions {
  /** The configuration with the other store. */
  to: string;
}

export interface MovedNode {
  node: string;
  to: string;
  blocks: string[];
  /** Others that have blocks in the store from which this host goes, and not in the other. */
  waiting: string[];
}

export function moveNode(options: MoveOptions): Promise<MovedNode> {
  return inCluster(options.config, (source) => inCluster(options.to, (target) => moved(options, source, target)));
}

async function moved(options: MoveOptions, source: OpenCluster, target: OpenCluster): Promise<MovedNode> {
  const self = thisNode(source.conf.node), other = thisNode(target.conf.node).node;
  if (other !== self.node) {
    throw notDone(
      `this host is node ${self.node}, and ${other} in ${options.to}`,
      `"node": "${self.node}" in ${options.to} gives it its name`,
    );
  }
  if (source.store.name === target.store.name) {
    throw notDone(
      `${target.store.name}: this host is there already`,
      "--to names the configuration with the other store",
    );
  }
  const files = lockedFiles(options.dataDirectory);
  const records = await recordsOf(source.store), wanted = ownBlocks(source, self, files, records);
  await comparePools(records, await recordsOf(target.store), target, wanted);
  await refuseBlocksOfOthers(target.store, self, wanted);
  const waiting = target.store.isWritable ? await claimAll(options, { self, files, target, wanted, records }) : [];
  if (!target.store.isWritable) await compareFiles(source, target, self, wanted);
  return { node: self.node, to: target.store.name, blocks: wanted, waiting };
}

/** What this host serves or looks after, in whichever state. */
function ownBlocks({ store }: OpenCluster, self: Self, files: NodeFiles, { blocks }: ClusterRecords): string[] {
  const { grants } = files.readHeld(), unknown = grants.find(({ state }) => state === "unknown");
  if (store.isWritable && unknown !== undefined) {
    throw notDone(
      `${unknown.key}: containers of this boot may have addresses of it of which this host does not know`,
      "move after the next boot",
    );
  }
  const own = store.isWritable ? grants : blocks.filter(({ value }) => value.owner?.node === self.node);
  return own.map(({ key }) => key);
}

/** A block of another shape would have other addresses. */
async function comparePools(
  here: ClusterRecords,
  there: ClusterRecords,
  { store }: OpenCluster,
  wanted: readonly string[],
): Promise<void> {
  for (const name of new Set(wanted.map(poolOf))) {
    const before = here.pools.get(name)?.pool,
      found = await store.read(poolKey(name)),
      after = there.pools.get(name)?.pool;
    if (before === undefined) {
      throw new Error(`${poolKey(name)}: this host has blocks of it, and its store has it no more`);
    }
    if (found === undefined || after === undefined) {
      throw notDone(
        `there is no pool ${name} in ${store.name}`,
        store.isWritable
          ? `'patchbay pool add ${name} FILE --config …' adds it, with "state": "closed" until each node has come`
          : `'patchbay node export' writes the files`,
      );
    }
    const singles = ({ singles }: typeof before) => singles.map(formatAddress).sort().join(" ");
    const key = shapeOf(before) !== shapeOf(after)
      ? "ranges"
      : singles(before) !== singles(after)
      ? "singles"
      : undefined;
    if (key === undefined) continue;
    throw notDone(
      `pool ${name}: its "${key}" are others in ${store.name}`,
      "they have to be the same: blocks keep their numbers",
    );
  }
}

interface Claiming {
  self: Self;
  files: NodeFiles;
  target: OpenCluster;
  wanted: readonly string[];
  /** What the store has from which it goes. */
  records: ClusterRecords;
}

/** Returns the nodes that have not come yet. */
async function claimAll(
  options: MoveOptions,
  { self, files, target, wanted, records }: Claiming,
): Promise<string[]> {
  const { store } = target, waiting = new Set<string>();
  for (const { key, value } of records.blocks) {
    const node = value.owner?.node, pool = poolOf(key);
    if (node === undefined || node === self.node) continue;
    const owner = await ownerOf(store, key);
    if (owner === node) continue;
    if (owner !== undefined && wanted.some((each) => poolOf(each) === pool)) {
      throw notDone(
        `${key} is ${owner}'s in ${store.name}, and ${node}'s here`,
        "one of the two gives it up before: 'patchbay ipam show --all' says who has what",
      );
    }
    waiting.add(node);
    if (!await isOpen(target, pool)) continue;
    throw notDone(
      `pool ${pool} is open in ${store.name}, and ${key} is ${node}'s here, and nobody's there`,
      `patchbay pool close ${pool} --config ${options.to}; 'pool close --undo' opens it when each node has come`,
    );
  }
  files.forgetStore();
  await claimOwn({ ...options, self, store, files }, wanted);
  return [...waiting].sort();
}

async function isOpen({ store }: OpenCluster, pool: string): Promise<boolean> {
  const found = await store.read(poolKey(pool));
  return found !== undefined && (found.value as { state?: string }).state !== "closed";
}

/** The files must give this host what it has, and nothing that it has not: another may claim that any moment. */
async function compareFiles(
  source: OpenCluster,
  target: OpenCluster,
  self: Self,
  wanted: readonly string[],
): Promise<void> {
  const nextStep = "'patchbay node export' writes what the store has, for every host",
    { blocks } = await recordsOf(target.store);
  if (await target.store.read(nodeKey(self.node)) === undefined) {
    throw notDone(`${target.store.name} have no file for node ${self.node}`, nextStep);
  }
  for (const key of wanted) {
    if (await ownerOf(target.store, key) === self.node) continue;
    throw notDone(`${key} is ${self.node}'s, and ${target.store.name} do not say so`, nextStep);
  }
  for (const { key, value } of blocks) {
    if (value.owner?.node !== self.node) continue;
    const owner = await ownerOf(source.store, key);
    if (owner === self.node) continue;
    throw notDone(
      `${target.store.name} give ${key} to ${self.node}, and in ${source.store.name} it is ${owner ?? "nobody"}'s`,
      nextStep,
    );
  }
}
