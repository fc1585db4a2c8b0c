/** Looks into a document as plugins do: letter case of keys does not count, and the last of equal keys does. */
import { foldKey } from "../../cni/json.ts";
import type { JsonEntry, JsonNode } from "../conf/positioned-json.ts";

export function entryOf(node: JsonNode, key: string): JsonEntry | undefined {
  return node.entries?.findLast((entry) => foldKey(entry.key) === foldKey(key));
}

export function stringAt(node: JsonNode, key: string): string | undefined {
  const value = entryOf(node, key)?.value.value;
  return typeof value === "string" ? value : undefined;
}

/** The node at a path such as `ipam.ranges[0][0].subnet`, or the innermost node around it. */
export function nodeAt(node: JsonNode, path: string): JsonNode {
  let found = node;
  for (const [, name, index] of path.matchAll(/([^.[\]]+)|\[([0-9]+)\]/g)) {
    const next = index === undefined ? entryOf(found, name!)?.value : found.items?.[Number(index)];
    if (next === undefined) break;
    found = next;
  }
  return found;
}
