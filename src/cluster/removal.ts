/** A person says that a machine is off. Its node may object, and until it cannot, nothing of it is given to others. */
import { changeRecord, listBlocks, putRecord, readStored, type Steps } from "./effects.ts";
import { type BlockRecord, isDead, nodeKey, type NodeRecord } from "./records.ts";

/** The first of two steps: whoever lives puts the record back. */
export function markOff(node: string) {
  return changeRecord<NodeRecord, "unknown node">(nodeKey(node), (value) => {
    if (value === undefined) return "unknown node";
    return value.state === "off" ? value : { ...value, state: "off" };
  });
}

/**
 * The same for a node of which only blocks are known. Nobody knows its machine, so it cannot object any more: who lives
 * would have put the record back before.
 */
export function* markUnrecordedOff(node: string, generation: number): Steps<"done" | "refused" | "lives"> {
  const nobodys: NodeRecord = { generation, machine: "", boot: "", state: "off" };
  const written = yield* putRecord<NodeRecord>(nodeKey(node), undefined, nobodys);
  if (typeof written === "object") return "done";
  if (written === "refused") return written;
  const found = yield* readStored<NodeRecord>(nodeKey(node));
  return found?.value.machine === "" && found.value.state === "off" ? "done" : "lives";
}

export interface FreedBlocks {
  freed: string[];
  /** Dead ones that could not be written. */
  remaining: string[];
}

/** The second, after the time to object; it may be repeated. */
export function* freeBlocksOf(node: string, pool: string): Steps<FreedBlocks> {
  const freed: string[] = [], remaining: string[] = [];
  for (const { key, value } of (yield* listBlocks(pool)).blocks) {
    if (value.owner?.node !== node) continue;
    const found = yield* readStored<BlockRecord>(key), now = yield* readStored<NodeRecord>(nodeKey(node));
    if (found?.value.owner?.node !== node || !isDead(found.value, now?.value)) continue;
    const { owner: _, ...free } = found.value;
    const written = yield* putRecord<BlockRecord>(key, found, { ...free, lastNode: node });
    (typeof written === "object" ? freed : remaining).push(key);
  }
  return { freed, remaining };
}
