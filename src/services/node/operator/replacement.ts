/**
 * `patchbay node replace`: this machine is the node from now on, and the one that was it is off, by a person's word.
 *
 * The other machine has the same time to object as for a removal. Afterwards, where this host neither serves blocks of the
 * node nor has containers with their addresses, it is a removal: they are freed, and this machine's agent joins as the next
 * generation, with nothing. So what is on a copied disk counts for nothing, and what the old machine kept on its own is dead
 * when it runs again. Where this host serves them, it is the same machine with another fingerprint (another network card),
 * or the one of two that shall stay: the node keeps its generation and its blocks, since ADD goes on here meanwhile.
 */
import { becomeNode, type Becoming } from "../../../cluster/replacement.ts";
import { nodeKey, type NodeRecord, type Stored } from "../../../cluster/records.ts";
import type { Self } from "../../../cluster/node.ts";
import { machineText } from "../../../cluster/host-findings.ts";
import { notDone } from "../not-done.ts";
import { thisNode } from "../self.ts";
import { type AttachedAddresses, countUse } from "../use.ts";
import { inCluster, type OpenCluster, outcomeOf, recordsOf, refuseByHand } from "./cluster.ts";
import { hostFacts } from "./host.ts";
import { freeBlocks, itLives, type NodeRemovalOptions, objection, takeOff } from "./removal.ts";

export interface ReplacementOptions extends NodeRemovalOptions {
  dataDirectory: string | undefined;
  attachedAddresses: AttachedAddresses;
}

export interface NodeReplaced {
  /** Whether it has the blocks that the node had. */
  keepsBlocks: boolean;
  freed: string[];
}

export function replaceNode(options: ReplacementOptions): Promise<NodeReplaced> {
  return inCluster(options.config, async (cluster) => {
    const { node } = options;
    refuseByHand(cluster, "node", node);
    const self = thisNode(cluster.conf.node);
    const found = await cluster.store.read(nodeKey(node)) as Stored<NodeRecord> | undefined;
    requireOther(options, self, found?.value);
    const { value } = found!, isUsed = await isInUse(cluster, self, options);
    if (isUsed && value.machine === self.machine) return await stay(cluster, self, options);
    const back = await takeOff(cluster, options, undefined);
    // The agent of this machine may have seen that it is off, and joined anew.
    const isSelf = back?.machine === self.machine && back.boot === self.boot && back.generation > value.generation;
    if (back !== undefined && !isSelf) throw itLives(node);
    const freed = isUsed ? [] : await freeBlocks(cluster, node);
    const state = !isUsed ? "off" : value.state === "draining" ? "draining" : "joined";
    if (!isSelf) await become(cluster, self, { state, after: "off" });
    return { keepsBlocks: isUsed, freed };
  });
}

function requireOther({ node, isOff }: ReplacementOptions, self: Self, record: NodeRecord | undefined): void {
  if (self.node !== node) {
    throw notDone(
      `this host is node ${self.node}, and not ${node}`,
      `"node": "${node}" in /etc/patchbay/cluster.json gives it the name; then repeat the command here`,
    );
  }
  if (record === undefined) {
    throw notDone(`node ${node} has no record, and nothing is to be replaced`, "'patchbay node' makes the record");
  }
  if (record.machine === self.machine && !record.isContested) {
    throw notDone(`node ${node} is this machine already`, "'patchbay node check' says how it stands");
  }
  if (isOff) return;
  const other = record.machine === self.machine ? "a copy of this machine" : machineText(record.machine);
  throw notDone(
    `node ${node} is ${other} in the store, and is not replaced without a person's word`,
    "--it-is-off says that the other machine is off for good. Then its blocks are given to others: if it runs after all, " +
      "cut off from the store, two containers have one address",
  );
}

/** Whether containers here have addresses of blocks that the store gives to the node, or may get some any moment. */
async function isInUse({ store }: OpenCluster, self: Self, options: ReplacementOptions): Promise<boolean> {
  const records = await recordsOf(store),
    { pools, files, held, notes } = hostFacts(self, options.dataDirectory, records);
  if (held.grants.some(({ state, claim }) => state === "held" && notes.ripe.includes(claim))) return true;
  const used = countUse(pools, files.leases, options.attachedAddresses, options.say);
  return records.blocks.some(({ key, value }) => value.owner?.node === options.node && used.has(key));
}

/** Two machines have one fingerprint, and this one has the containers. Marked off, its own agent would object. */
async function stay(cluster: OpenCluster, self: Self, options: ReplacementOptions): Promise<NodeReplaced> {
  const { node, say, secondsToObject } = options;
  await become(cluster, self, {});
  say(`node ${node} is this machine; another that is it, too, has ${secondsToObject} s to object`);
  const other = await objection(
    cluster,
    options,
    ({ isContested, boot }) => isContested === true || boot !== self.boot,
  );
  if (other !== undefined) throw itLives(node);
  return { keepsBlocks: true, freed: [] };
}

async function become(cluster: OpenCluster, self: Self, becoming: Becoming): Promise<void> {
  if (await outcomeOf(cluster, becomeNode(self, becoming)) === "lives") throw itLives(self.node);
}
