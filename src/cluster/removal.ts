/** A person says that a machine is off. Its node may object, and until it cannot, nothing of it is given to others. */
import { listBlocks, putRecord, readStored, type Steps } from "./effects.ts";
import { type BlockRecord, isDead, nodeKey, type NodeRecord } from "./records.ts";

export type NodeRemoval = "marked" | "lives" | "unknown node" | "removed";

/** The first of two steps: whoever lives puts the record back. */
export function* markOff(node: string): Steps<NodeRemoval> {
  const key = nodeKey(node), found = yield* readStored<NodeRecord>(key);
  if (found === undefined) return "unknown node";
  if (found.value.state === "off") return "marked";
  const written = yield* putRecord<NodeRecord>(key, found, { ...found.value, state: "off" });
  return typeof written === "object" ? "marked" : "lives";
}

/** The second, after the time to object; it may be repeated. */
export function* freeBlocksOf(node: string, pool: string): Steps<NodeRemoval> {
  const record = yield* readStored<NodeRecord>(nodeKey(node));
  if (record === undefined) return "unknown node";
  for (const { key, value } of (yield* listBlocks(pool)).blocks) {
    if (value.owner?.node !== node) continue;
    const found = yield* readStored<BlockRecord>(key), now = yield* readStored<NodeRecord>(nodeKey(node));
    if (found?.value.owner?.node !== node || !isDead(found.value, now?.value)) continue;
    const { owner: _, ...free } = found.value;
    yield* putRecord<BlockRecord>(key, found, { ...free, lastNode: node });
  }
  return record.value.state === "off" ? "removed" : "lives";
}
