/** A pool's blocks as lines: neighbours of one owner are one. */
import { expect, test } from "bun:test";
import { poolFrom } from "../../src/cluster/pool-decoding.ts";
import { blockWith } from "../../src/cluster/pool.ts";
import { blockKey, type BlockOwner, type NodeRecord, type Stored } from "../../src/cluster/records.ts";
import type { BlockRecord } from "../../src/cluster/records.ts";
import { runsOf } from "../../src/cluster/runs.ts";
import { parseAddress } from "../../src/net/address.ts";

const pool = poolFrom("lan", { layout: "flat", ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.16", blockSize: 16 }] });
const routed = poolFrom("pods", {
  layout: "routed",
  ranges: [{ cidr: "10.8.0.0/22", blockLength: 24 }, { cidr: "fd00::/62", blockLength: 64 }],
});
const node = (more: Partial<NodeRecord> = {}): NodeRecord => ({
  generation: 2,
  machine: "m",
  boot: "b",
  state: "joined",
  ...more,
});
const nodes = new Map([["n1", node()], ["n2", node({ state: "off" })]]);

function block(
  index: number,
  owner?: [node: string, generation: number],
  more: Partial<Stored<BlockRecord> & BlockRecord> = {},
): Stored<BlockRecord> {
  const { isGoing = false, poolBirth = "1" } = more, [name, generation] = owner ?? [];
  const its: BlockOwner | undefined = owner && { node: name!, generation: generation!, claim: String(index) };
  const value = { poolBirth, index, ...its && { owner: its } };
  return { key: blockKey("lan", index), value, version: 1, birth: "1", isGoing };
}

const linesOf = (blocks: Stored<BlockRecord>[], of = pool) =>
  runsOf({ pool: of, birth: "1", blocks, nodes }).map(({ first, last, fate, node = "", addresses, ...more }) =>
    [`${first}-${last} ${fate} ${node}`.trim(), addresses.join(" "), ...Object.keys(more)].join(", ")
  );

test("a pool without records is free", () => {
  expect(linesOf([])).toEqual(["0-13 free, 10.0.0.16-10.0.0.239"]);
});

test("neighbours of one owner are one line, whatever order the store has them in", () => {
  expect(linesOf([block(3, ["n1", 2]), block(1, ["n1", 2]), block(2), block(13, ["n1", 2]), block(4, ["n1", 2])]))
    .toEqual([
      "0-0 free, 10.0.0.16-10.0.0.31",
      "1-1 owned n1, 10.0.0.32-10.0.0.47, generation",
      "2-2 free, 10.0.0.48-10.0.0.63",
      "3-4 owned n1, 10.0.0.64-10.0.0.95, generation",
      "5-12 free, 10.0.0.96-10.0.0.223",
      "13-13 owned n1, 10.0.0.224-10.0.0.239, generation",
    ]);
});

test("a block of an earlier generation, of a node that is off, and of one that nobody knows", () => {
  expect(linesOf([block(0, ["n1", 1]), block(1, ["n2", 2]), block(2, ["n9", 1])]).slice(0, 3)).toEqual([
    "0-0 dead n1, 10.0.0.16-10.0.0.31, generation",
    "1-1 dead n2, 10.0.0.32-10.0.0.47, generation",
    "2-2 unrecorded n9, 10.0.0.48-10.0.0.63, generation",
  ]);
});

test("what was claimed of an earlier pool, and what somebody has asked to delete", () => {
  const going = { isGoing: true } as const;
  expect(linesOf([block(0, ["n1", 2], { poolBirth: "0" }), block(1, ["n1", 2], going), block(2, undefined, going)]))
    .toEqual([
      "0-0 owned n1, 10.0.0.16-10.0.0.31, generation, isOfEarlierPool",
      "1-1 owned n1, 10.0.0.32-10.0.0.47, generation, isGoing",
      "2-2 free, 10.0.0.48-10.0.0.63, isGoing",
      "3-13 free, 10.0.0.64-10.0.0.239",
    ]);
});

test("a block behind the pool's last one is in no line", () => {
  expect(linesOf([block(14, ["n1", 2])])).toEqual(["0-13 free, 10.0.0.16-10.0.0.239"]);
});

test("one block of a routed pool is a subnet of each family, several are from the first to the last", () => {
  expect(linesOf([block(1, ["n1", 2])], routed)).toEqual([
    "0-0 free, 10.8.0.0/24 fd00::/64",
    "1-1 owned n1, 10.8.1.0/24 fd00:0:0:1::/64, generation",
    "2-3 free, 10.8.2.0-10.8.3.255 fd00:0:0:2::-fd00::3:ffff:ffff:ffff:ffff",
  ]);
});

test("blocks of one address", () => {
  const singles = poolFrom("one", {
    layout: "flat",
    ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.7", to: "10.0.0.8", blockSize: 1 }],
  });
  expect(linesOf([block(0, ["n1", 2])], singles)).toEqual([
    "0-0 owned n1, 10.0.0.7, generation",
    "1-1 free, 10.0.0.8",
  ]);
});

test("single addresses are behind the blocks, each with its owner", () => {
  const withSingles = poolFrom("lan", {
    layout: "flat",
    ranges: [{ cidr: "10.0.0.0/24", from: "10.0.0.16", to: "10.0.0.47", blockSize: 16 }],
    singles: ["10.0.0.201", "10.0.0.20"],
  });
  const index = blockWith(withSingles, parseAddress("10.0.0.201")!)!;
  expect(linesOf([block(0, ["n1", 2]), block(index, ["n1", 2])], withSingles)).toEqual([
    "0-0 owned n1, 10.0.0.16-10.0.0.31, generation",
    "1-1 free, 10.0.0.32-10.0.0.47",
    "1048596-1048596 free, 10.0.0.20, isSingle",
    "1048777-1048777 owned n1, 10.0.0.201, generation, isSingle",
  ]);
});
