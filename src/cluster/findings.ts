/** What is not as it should be in a cluster's records, whose fault it is, and what to type. */
import { type ClusterPool, countBlocks, isSingle, piecesOf } from "./pool.ts";
import { overlapsAmong } from "./overlaps.ts";
import { type AlarmRecord, type BlockRecord, indexOf, type NodeRecord, poolOf, type Stored } from "./records.ts";
import { fateOf } from "./runs.ts";

export interface ClusterFinding {
  /** A key, a pool, an address. */
  about: string;
  problem: string;
  step?: string;
  /** It may be meant so. */
  isNote?: true;
}

export interface PoolInStore {
  pool: ClusterPool;
  birth: string;
}

/** All that a store has, as lists show it. */
export interface ClusterRecords {
  pools: ReadonlyMap<string, PoolInStore>;
  nodes: ReadonlyMap<string, NodeRecord>;
  blocks: readonly Stored<BlockRecord>[];
  alarm?: Stored<AlarmRecord>;
  /** What is no record: its key, and why. */
  problems: readonly string[];
}

export function recordsFindings(records: ClusterRecords): ClusterFinding[] {
  const { alarm, nodes, problems, pools } = records;
  return [
    ...problems.map(foreignFinding),
    ...alarm === undefined ? [] : [alarmFinding(alarm)],
    ...[...nodes].flatMap(([node, record]) => nodeFindings(node, record)),
    ...blocksFindings(records),
    ...overlapsAmong([...pools.values()].map(({ pool }) => pool).filter((pool) => gives(pool, records))).map((
      { pools: [one, other], addresses },
    ) => ({
      about: `pools ${one} and ${other}`,
      problem: `both have ${addresses}: right for two segments that do not meet, and wrong on one`,
      step: `where they meet, 'patchbay pool close ${other}', and drain what it has given out`,
      isNote: true as const,
    })),
  ];
}

function gives({ name, isOpen }: ClusterPool, { blocks }: ClusterRecords): boolean {
  return isOpen || blocks.some(({ key, value }) => value.owner !== undefined && poolOf(key) === name);
}

export function foreignFinding(problem: string): ClusterFinding {
  const [, about = "the store", why = problem] = /^(\S+) is (no record: [^]*)$/.exec(problem) ?? [];
  return {
    about,
    problem: `it is ${why}`,
    step: "nothing of it counts: correct or delete it where the store is, or upgrade this program",
  };
}

function alarmFinding({ value }: Stored<AlarmRecord>): ClusterFinding {
  return {
    about: "alarm",
    problem: `${value.by} has raised it: ${value.saw}`,
    step: "'patchbay node check' says who has looked since",
  };
}

export function nodeFindings(node: string, { isContested, conflicts = [] }: NodeRecord): ClusterFinding[] {
  const about = `node/${node}`;
  const contested: ClusterFinding = {
    about,
    problem: "two machines that run say that they are this node",
    step: `stop one of them; then 'patchbay node replace ${node} --it-is-off' on the other`,
  };
  return [
    ...isContested ? [contested] : [],
    ...conflicts.map((key) => ({
      about: key,
      problem: `containers of ${node} have its addresses, and the store gives it to another, or to nobody`,
      step: `'patchbay ipam check' on ${node} says which containers: detach them, or those of the other node`,
    })),
  ];
}

function blocksFindings({ pools, nodes, blocks }: ClusterRecords): ClusterFinding[] {
  const kinds = new Map<string, { node: string; kind: BlockProblem; keys: string[] }>();
  for (const { key, value } of blocks) {
    if (value.owner === undefined) continue;
    const kind = problemOf(value, pools.get(poolOf(key)), fateOf(value, nodes)), { node } = value.owner;
    if (kind !== undefined) {
      kinds.getOrInsertComputed(`${kind} ${node}`, () => ({ node, kind, keys: [] })).keys.push(key);
    }
  }
  return [...kinds.values()].map(({ node, kind, keys }) => ({
    about: `node/${node}`,
    ...blockProblems[kind](node, inShort(keys), nodes.get(node)),
  }));
}

type BlockProblem = "dead" | "unrecorded" | "without pool" | "earlier pool" | "behind" | "no single";

function problemOf(
  block: BlockRecord,
  pool: PoolInStore | undefined,
  fate: ReturnType<typeof fateOf>,
): BlockProblem | undefined {
  if (fate === "dead" || fate === "unrecorded") return fate;
  if (pool === undefined) return "without pool";
  if (block.poolBirth !== pool.birth) return "earlier pool";
  if (isSingle(block.index)) return piecesOf(pool.pool, block.index).length === 0 ? "no single" : undefined;
  return block.index >= countBlocks(pool.pool) ? "behind" : undefined;
}

const givenBack = "it gives them back as they become empty";

const blockProblems: Record<
  BlockProblem,
  (node: string, keys: string, record: NodeRecord | undefined) => Omit<ClusterFinding, "about">
> = {
  dead: (node, keys, record) =>
    record?.state === "off"
      ? {
        problem: `it is off by a person's word, and still has ${keys}`,
        step: `'patchbay node remove ${node} --it-is-off', once more, frees them`,
      }
      : {
        problem: `it was removed, runs again without ${keys}, and they were not freed`,
        step: `'patchbay node remove ${node}' frees them, and nothing else`,
      },
  unrecorded: (node, keys) => ({
    problem: `it has ${keys}, and no record`,
    step:
      `its agent writes the record when it runs; for a machine that is off for good, 'patchbay node remove ${node} ` +
      "--it-is-off'",
  }),
  "without pool": (_, keys) => ({ problem: `it has ${keys}, and the store has no such pool: ${givenBack}` }),
  "earlier pool": (_, keys) => ({
    problem:
      `it has ${keys} of a pool that was deleted, or cut in another way: ${givenBack}, and nothing of the pool is claimed before`,
  }),
  behind: (_, keys) => ({
    problem:
      `it has ${keys}, behind the pool's last block: the pool's ranges have become others, which they must not`,
    step: "give the pool the ranges that it had, and make another pool for others",
  }),
  "no single": (_, keys) => ({
    problem: `it has ${keys}, single addresses that the pool no longer lists: ${givenBack}`,
    step: 'put them back into "singles", or into "exclude"',
  }),
};

/** Three of them, and how many more there are. */
export function inShort(keys: readonly string[]): string {
  const [one, two, three] = keys.toSorted((a, b) => poolOf(a).localeCompare(poolOf(b)) || indexOf(a) - indexOf(b));
  const more = keys.length > 3 ? ` and ${keys.length - 3} more` : "";
  return [one, two, three].filter((key) => key !== undefined).join(", ") + more;
}

/** Why an alarm is not over yet: who is not off by a person's word has to have looked since, and to agree. Nothing when it is. */
export function alarmObstacles(alarm: Stored<AlarmRecord>, records: ClusterRecords): string[] {
  const alive = [...records.nodes].filter(([, { state }]) => state !== "off"),
    owners = new Set(records.blocks.flatMap(({ value }) => value.owner?.node ?? []));
  return [
    ...alive.filter(([, { heard }]) => heard !== alarm.birth).map(([node]) => `${node} has not looked since`),
    ...[...owners].filter((node) => !records.nodes.has(node)).map((node) => `${node} has blocks, and no record`),
    ...alive.flatMap(([node, { conflicts = [] }]) =>
      conflicts.map((key) =>
        `containers of ${node} have addresses of ${key}, which the store gives to another, or to nobody`
      )
    ),
    ...records.problems.filter((problem) => problem.startsWith("node/")),
  ];
}
