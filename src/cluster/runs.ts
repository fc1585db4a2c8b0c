/** A pool's blocks for people: neighbours that have the same to be said of them are one line. */
import { formatAddress, formatPrefix } from "../net/address.ts";
import { blockWith, type ClusterPool, countBlocks, piecesOf } from "./pool.ts";
import { type BlockRecord, isDead, type NodeRecord, type Stored } from "./records.ts";

/** `dead`: its node was removed, and the block was not freed. `unrecorded`: the store does not know the node. */
export type BlockFate = "free" | "owned" | "dead" | "unrecorded";

export interface BlockRun {
  first: number;
  last: number;
  fate: BlockFate;
  node?: string;
  generation?: number;
  /** It was claimed of an earlier pool of this name. */
  isOfEarlierPool?: true;
  /** Somebody has asked to delete it. */
  isGoing?: true;
  /** An address that only who asks for it gets. */
  isSingle?: true;
  /** `10.0.0.16-10.0.0.47`, one for each family. */
  addresses: string[];
}

export interface RunsOf {
  pool: ClusterPool;
  /** The pool's. */
  birth: string;
  /** This pool's. */
  blocks: readonly Stored<BlockRecord>[];
  nodes: ReadonlyMap<string, NodeRecord>;
}

type Said = Omit<BlockRun, "first" | "last" | "addresses">;

/** All of the pool's blocks in order, and behind them its singles. */
export function runsOf({ pool, birth, blocks, nodes }: RunsOf): BlockRun[] {
  const count = countBlocks(pool), runs: { first: number; last: number; said: Said }[] = [];
  const add = (first: number, last: number, said: Said) => {
    const before = runs.at(-1);
    if (before !== undefined && JSON.stringify(before.said) === JSON.stringify(said)) before.last = last;
    else runs.push({ first, last, said });
  };
  const known = blocks.filter(({ value }) => value.index < count)
    .toSorted((one, other) => one.value.index - other.value.index);
  let at = 0;
  for (const block of known) {
    const { index } = block.value;
    if (index > at) add(at, index - 1, { fate: "free" });
    add(index, index, saidOf(block, birth, nodes));
    at = index + 1;
  }
  if (at < count) add(at, count - 1, { fate: "free" });
  for (const index of singlesOf(pool)) {
    const block = blocks.find(({ value }) => value.index === index);
    const said = block === undefined ? { fate: "free" as const } : saidOf(block, birth, nodes);
    runs.push({ first: index, last: index, said: { ...said, isSingle: true } });
  }
  return runs.map(({ first, last, said }) => ({ first, last, ...said, addresses: addressesOf(pool, first, last) }));
}

function singlesOf(pool: ClusterPool): number[] {
  return pool.singles.flatMap((address) => blockWith(pool, address) ?? []).sort((one, other) => one - other);
}

function saidOf({ value, isGoing }: Stored<BlockRecord>, birth: string, nodes: RunsOf["nodes"]): Said {
  const { owner, poolBirth } = value, going = isGoing && { isGoing } as const;
  if (owner === undefined) return { fate: "free", ...going };
  const earlier = poolBirth !== birth && { isOfEarlierPool: true } as const;
  return { fate: fateOf(value, nodes), node: owner.node, generation: owner.generation, ...earlier, ...going };
}

export function fateOf(block: BlockRecord, nodes: ReadonlyMap<string, NodeRecord>): BlockFate {
  if (block.owner === undefined) return "free";
  const node = nodes.get(block.owner.node);
  if (node === undefined) return "unrecorded";
  return isDead(block, node) ? "dead" : "owned";
}

/** As people write them: a subnet, an address, or the first and the last one. */
export function addressesOf(pool: ClusterPool, first: number, last: number): string[] {
  const ends = piecesOf(pool, last);
  return piecesOf(pool, first).map((piece, at) => {
    if (pool.layout === "routed" && first === last) return formatPrefix(piece.subnet);
    const from = formatAddress(piece.first), to = formatAddress(ends[at]!.last);
    return from === to ? from : `${from}-${to}`;
  });
}
