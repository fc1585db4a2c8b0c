/**
 * `patchbay node remove`: a person says that a machine is off. Its node has time to object; then its blocks are free for
 * others. It may be interrupted at any moment, and repeated.
 */
import { StoreSilent } from "../../../cluster/effects.ts";
import { inShort } from "../../../cluster/findings.ts";
import { nameIn, nodeKey, type NodeRecord, poolOf, type Stored } from "../../../cluster/records.ts";
import { freeBlocksOf, markOff, markUnrecordedOff } from "../../../cluster/removal.ts";
import { errorText } from "../../../cni/error.ts";
import { delay } from "../../../cluster-stores/delay.ts";
import { notDone } from "../not-done.ts";
import { inCluster, type OpenCluster, outcomeOf, recordsOf, refuseByHand, unknownName } from "./cluster.ts";

/** More than a connected agent needs to notice, to be started again, and to write. */
export const SECONDS_TO_OBJECT = 90;
const LOOK_MS = 500;
/** Without an answer nobody could object, so the time begins anew; and not for ever. */
const MOST_SILENT_SECONDS = 120;

export interface NodeRemovalOptions {
  config: string | undefined;
  node: string;
  /** A person's word. */
  isOff: boolean;
  secondsToObject: number;
  say(text: string): void;
}

export type TimeToObject = Pick<NodeRemovalOptions, "node" | "say" | "secondsToObject">;

export interface NodeRemoved {
  /** `only the dead`: blocks from before an earlier removal, which needs nobody's word. */
  outcome: "removed" | "came back" | "only the dead";
  freed: string[];
}

export function removeNode(options: NodeRemovalOptions): Promise<NodeRemoved> {
  return inCluster(options.config, async (cluster) => {
    const { node, isOff } = options;
    refuseByHand(cluster, "node", node);
    const found = await cluster.store.read(nodeKey(node)) as Stored<NodeRecord> | undefined,
      generation = await generationOf(cluster, node);
    if (found === undefined && generation === undefined) {
      const known = (await cluster.store.list("node")).records.map(({ key }) => nameIn(key));
      throw unknownName("node", node, known);
    }
    if (!isOff) return await freeTheDead(cluster, node, found);
    const back = await takeOff(cluster, options, generation), before = found?.value.generation ?? generation!;
    // An agent without containers gives up everything, and joins anew.
    if (back !== undefined && back.generation <= before) throw itLives(node);
    return { outcome: back === undefined ? "removed" : "came back", freed: await freeBlocks(cluster, node) };
  });
}

/** The newest in which it has claimed something; undefined when it has nothing. */
async function generationOf({ store }: OpenCluster, node: string): Promise<number | undefined> {
  const { blocks } = await recordsOf(store);
  const own = blocks.flatMap(({ value: { owner } }) => owner?.node === node ? [owner.generation] : []);
  return own.length === 0 ? undefined : Math.max(...own);
}

async function freeTheDead(
  cluster: OpenCluster,
  node: string,
  found: Stored<NodeRecord> | undefined,
): Promise<NodeRemoved> {
  const mayFree = found !== undefined && found.value.state !== "off";
  const freed = mayFree ? await freeBlocks(cluster, node) : [];
  if (freed.length > 0) return { outcome: "only the dead", freed };
  const standing = found === undefined ? "has no record" : `is ${found.value.state}`;
  const nextStep =
    "--it-is-off says that its machine is off, for good or until its next boot. Then its blocks are given " +
    "to others: if it runs after all, cut off from the store, two containers have one address. 'patchbay node drain " +
    `${node}' empties a node that runs`;
  throw notDone(`node ${node} ${standing}, and is not removed without a person's word`, nextStep);
}

/**
 * Marks the node, and waits: the record of who objects, or has joined anew, or undefined. `generation`: of its blocks, should
 * the store not know it.
 */
export async function takeOff(
  cluster: OpenCluster,
  options: TimeToObject,
  generation: number | undefined,
): Promise<NodeRecord | undefined> {
  const { node, say, secondsToObject } = options;
  const marked = await outcomeOf(cluster, markOff(node));
  if (marked === "unknown node") {
    say(`node ${node} has no record: whoever runs writes it again within ${secondsToObject} s`);
    if (await objection(cluster, options, () => true) !== undefined) throw itLives(node);
    if (await outcomeOf(cluster, markUnrecordedOff(node, generation!)) === "lives") throw itLives(node);
    return undefined;
  }
  say(`node ${node} is marked off, and has ${secondsToObject} s to object; when this is interrupted, repeat it`);
  return await objection(cluster, options, isBack);
}

export function itLives(node: string): Error {
  const nextStep = `'patchbay node drain ${node}' empties it; or stop it, and repeat the command`;
  return notDone(`node ${node} lives: it has put its record back; nothing of it is freed`, nextStep);
}

/** The record, when it is what `isObjection` looks for before the time is over. */
export async function objection(
  { store }: OpenCluster,
  { node, secondsToObject, say }: TimeToObject,
  isObjection: (record: NodeRecord) => boolean,
): Promise<NodeRecord | undefined> {
  let begun = performance.now(), silentSince: number | undefined;
  while (performance.now() - begun < secondsToObject * 1000) {
    try {
      const record = (await store.read(nodeKey(node)))?.value as NodeRecord | undefined;
      if (record !== undefined && isObjection(record)) return record;
      silentSince = undefined;
    } catch (error) {
      if (!(error instanceof StoreSilent)) throw error;
      begun = performance.now();
      if (silentSince === undefined) say(`${errorText(error)}: the time to object begins anew`);
      silentSince ??= begun;
      if (begun - silentSince > MOST_SILENT_SECONDS * 1000) throw error;
    }
    await delay(LOOK_MS);
  }
  return undefined;
}

function isBack({ state }: NodeRecord): boolean {
  return state !== "off";
}

/** In all pools, whether the store still has them or not. */
export async function freeBlocks(cluster: OpenCluster, node: string): Promise<string[]> {
  const { blocks } = await recordsOf(cluster.store), freed: string[] = [], remaining: string[] = [];
  const pools = new Set(blocks.filter(({ value }) => value.owner?.node === node).map(({ key }) => poolOf(key)));
  for (const pool of pools) {
    const of = await cluster.driver.run(freeBlocksOf(node, pool));
    freed.push(...of.freed);
    remaining.push(...of.remaining);
  }
  if (remaining.length === 0) return freed;
  const why = cluster.driver.refusal ?? "others were faster";
  throw notDone(`${inShort(remaining)} of node ${node} are not freed: ${why}`, "repeat the command");
}
