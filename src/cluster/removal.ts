/** A person says that a machine is off. Its node may object, and until it cannot, nothing of it is given to others. */
import { listBlocks, MOST_ATTEMPTS, putRecord, readStored, type Steps, StoreSilent } from "./effects.ts";
import { type BlockRecord, isDead, nodeKey, type NodeRecord } from "./records.ts";

/** The first of two steps: whoever lives puts the record back. */
export function* markOff(node: string): Steps<"marked" | "refused" | "unknown node"> {
  const key = nodeKey(node);
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const found = yield* readStored<NodeRecord>(key);
    if (found === undefined) return "unknown node";
    if (found.value.state === "off") return "marked";
    const written = yield* putRecord<NodeRecord>(key, found, { ...found.value, state: "off" });
    if (typeof written === "object") return "marked";
    if (written === "refused") return written;
  }
  throw new StoreSilent(`${key} changes again and again`);
}

/**
 * The same for a node of which only blocks are known. Nobody knows its machine, so it cannot object any more: who lives
 * would have put the record back before.
 */
export function* markUnrecordedOff(node: string, generation: number): Steps<"marked" | "refused" | "lives"> {
  const nobodys: NodeRecord = { generation, machine: "", boot: "", state: "off" };
  const written = yield* putRecord<NodeRecord>(nodeKey(node), undefined, nobodys);
  if (typeof written === "object") return "marked";
  if (written === "refused") return written;
  const found = yield* readStored<NodeRecord>(nodeKey(node));
  return found?.value.machine === "" && found.value.state === "off" ? "marked" : "lives";
}

export interface FreedBlocks {
  node: "unknown node" | "lives" | "removed";
  freed: string[];
  /** Dead ones that could not be written. */
  remaining: string[];
}

/** The second, after the time to object; it may be repeated. */
export function* freeBlocksOf(node: string, pool: string): Steps<FreedBlocks> {
  const record = yield* readStored<NodeRecord>(nodeKey(node)), freed: string[] = [], remaining: string[] = [];
  if (record === undefined) return { node: "unknown node", freed, remaining };
  for (const { key, value } of (yield* listBlocks(pool)).blocks) {
    if (value.owner?.node !== node) continue;
    const found = yield* readStored<BlockRecord>(key), now = yield* readStored<NodeRecord>(nodeKey(node));
    if (found?.value.owner?.node !== node || !isDead(found.value, now?.value)) continue;
    const { owner: _, ...free } = found.value;
    const written = yield* putRecord<BlockRecord>(key, found, { ...free, lastNode: node });
    (typeof written === "object" ? freed : remaining).push(key);
  }
  return { node: record.value.state === "off" ? "removed" : "lives", freed, remaining };
}
