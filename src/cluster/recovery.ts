/** Whether an alarm is over: everybody has looked since, and nobody disagrees, or is off by a person's word. */
import type { AlarmRecord, NodeRecord, Stored } from "./records.ts";

export interface Recovery {
  /** Nodes that have not looked since. */
  unheard: string[];
  /** Blocks of which containers of two nodes have addresses, by node. */
  conflicts: { node: string; key: string }[];
}

export function recoveryOf(alarm: Stored<AlarmRecord>, nodes: readonly Stored<NodeRecord>[]): Recovery {
  const alive = nodes.filter(({ value }) => value.state !== "off").map(({ key, value }) => ({
    node: key.slice("node/".length),
    ...value,
  }));
  return {
    unheard: alive.filter(({ heard }) => heard !== alarm.birth).map(({ node }) => node),
    conflicts: alive.flatMap(({ node, conflicts = [] }) => conflicts.map((key) => ({ node, key }))),
  };
}
