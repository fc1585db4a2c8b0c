/** `patchbay node list`, and draining one: what a store knows of the nodes. */
import { alarmObstacles, type ClusterRecords } from "../../../cluster/findings.ts";
import { type NodeRecord, poolOf } from "../../../cluster/records.ts";
import { fateOf } from "../../../cluster/runs.ts";
import { undefinedOnError } from "../../../cni/error.ts";
import { notDone } from "../not-done.ts";
import { thisNode } from "../self.ts";
import { changeNamed, inCluster, recordsOf } from "./cluster.ts";

export interface NodeSummary {
  node: string;
  /** Undefined where the node has blocks, and no record. */
  state?: NodeRecord["state"];
  generation?: number;
  machine?: string;
  boot?: string;
  isContested: boolean;
  /** Whether it has looked since the alarm; undefined without one. */
  hasLooked?: boolean;
  /** Blocks that are another node's, although containers there have addresses of them. */
  conflicts: readonly string[];
  /** By pool. */
  blocks: Record<string, number>;
  /** What it had before it was removed, and nobody has freed. */
  dead: number;
  isThisHost: boolean;
  /** Other nodes that the same machine is, or was. */
  sameMachine: string[];
}

export interface NodeList {
  store: string;
  /** False where people write it. */
  isWritable: boolean;
  /** `openBecause`: why it is not over. */
  alarm?: { by: string; saw: string; openBecause: string[] };
  nodes: NodeSummary[];
  problems: readonly string[];
}

export function listNodes(config: string | undefined): Promise<NodeList> {
  return inCluster(config, async ({ store, conf }) => {
    const records = await recordsOf(store);
    const standing = nodesIn(records, nameOfThisHost(conf.node));
    return { store: store.name, isWritable: store.isWritable, ...standing, problems: records.problems };
  });
}

/** A person may ask from a machine that is no node. */
export function nameOfThisHost(configured: string | undefined): string | undefined {
  return undefinedOnError(() => thisNode(configured).node);
}

export function nodesIn(records: ClusterRecords, own: string | undefined): Pick<NodeList, "alarm" | "nodes"> {
  const { alarm, nodes, blocks } = records;
  const owners = blocks.flatMap(({ value }) => value.owner?.node ?? []);
  const names = [...new Set([...nodes.keys(), ...owners])].sort();
  const byOwner = Map.groupBy(blocks, ({ value }) => value.owner?.node),
    byMachine = Map.groupBy(nodes.keys(), (node) => nodes.get(node)!.machine);
  return {
    ...alarm !== undefined && { alarm: { ...alarm.value, openBecause: alarmObstacles(alarm, records) } },
    nodes: names.map((node) => summaryOf(node, records, { own, blocks: byOwner.get(node) ?? [], byMachine })),
  };
}

interface Grouped {
  own: string | undefined;
  /** This node's. */
  blocks: ClusterRecords["blocks"];
  byMachine: ReadonlyMap<string, readonly string[]>;
}

function summaryOf(
  node: string,
  { nodes, alarm }: ClusterRecords,
  { own, blocks: its, byMachine }: Grouped,
): NodeSummary {
  const record = nodes.get(node);
  const counts: Record<string, number> = {};
  const isDead = ({ value }: typeof its[number]) => fateOf(value, nodes) === "dead";
  for (const block of its) if (!isDead(block)) counts[poolOf(block.key)] = (counts[poolOf(block.key)] ?? 0) + 1;
  const { machine } = record ?? {};
  return {
    node,
    state: record?.state,
    generation: record?.generation,
    machine,
    boot: record?.boot,
    isContested: record?.isContested === true,
    ...alarm !== undefined && record !== undefined && { hasLooked: record.heard === alarm.birth },
    conflicts: record?.conflicts ?? [],
    blocks: counts,
    dead: its.filter(isDead).length,
    isThisHost: node === own,
    // A roster knows no machines.
    sameMachine: machine ? byMachine.get(machine)!.filter((name) => name !== node) : [],
  };
}

/** Its agent gives blocks back as they become empty. Whether something has changed. */
export function drainNode(config: string | undefined, node: string, isUndone: boolean): Promise<boolean> {
  return inCluster(config, async (cluster) => {
    const state = isUndone ? "joined" : "draining";
    const before = await changeNamed<NodeRecord>(cluster, "node", node, (value) => {
      if (value.state === "off") {
        throw notDone(
          `node ${node} is off by a person's word, and has nothing to drain`,
          "when its machine runs again, its agent joins as a node without blocks",
        );
      }
      return value.state === state ? value : { ...value, state };
    });
    return before.state !== state;
  });
}
