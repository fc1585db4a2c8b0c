/** Which pools a node has, beside what it knew: what a block is, never changes under its containers. */
import { expect, test } from "bun:test";
import type { Grant } from "../../../src/cluster/effects.ts";
import type { PoolRecord, Stored } from "../../../src/cluster/records.ts";
import { poolsOfNode } from "../../../src/services/node/pools.ts";

const value = (range: object = {}, more: object = {}): PoolRecord => ({
  layout: "flat",
  ranges: [{ cidr: "10.1.0.0/24", blockSize: 16, ...range }],
  ...more,
});
const listed = (record: PoolRecord, birth = "1"): Stored<PoolRecord>[] => [
  { key: "pool/lan", value: record, version: 1, birth, isGoing: false },
];
const known = [{ name: "lan", birth: "1", value: value() }];
const grants: Grant[] = [{ key: "block/lan.0", claim: "c", state: "held", version: 1 }];

test("a pool that is new here", () => {
  const [pool] = poolsOfNode(listed(value()), [], [], {});
  expect(pool).toMatchObject({ name: "lan", size: 15, obstacle: undefined });
});

test.each<[string, Stored<PoolRecord>[], string]>([
  ["deleted", [], "it is deleted"],
  ["made anew", listed(value(), "2"), "it was deleted and made anew"],
  ["with another block size", listed(value({ blockSize: 8 })), "its ranges have become others"],
  ["with another subnet", listed(value({ cidr: "10.2.0.0/24" })), "its ranges have become others"],
  ["closed", listed(value({}, { state: "closed" })), "it is closed"],
])("a pool of which there are blocks here, %s: they stay what they were, and no more come", (_, now, obstacle) => {
  const [pool] = poolsOfNode(now, known, grants, {});
  expect(pool!.obstacle).toStartWith(obstacle);
  expect([pool!.kept.birth, pool!.size, pool!.kept.value.ranges]).toEqual(["1", 15, value().ranges]);
});

test("an address that has been a single stays one, or goes to those that are excluded", () => {
  const before = [{ name: "lan", birth: "1", value: value({}, { singles: ["10.1.0.20"] }) }];
  const obstacleWith = (now: PoolRecord) => poolsOfNode(listed(now), before, grants, {})[0]!.obstacle;
  expect(obstacleWith(value())).toStartWith('10.1.0.20 is no longer in "singles"');
  expect(obstacleWith(value({ exclude: ["10.1.0.16/28"] }))).toBeUndefined();
  expect(obstacleWith(value({}, { singles: ["10.1.0.20", "10.1.0.21"] }))).toBeUndefined();
});

test("a pool that is cut in another way is another one to whoever looks at its blocks", () => {
  const birthOf = (now: PoolRecord) => poolsOfNode(listed(now), [], [], {})[0]!.birth;
  expect(birthOf(value({ blockSize: 8 }))).not.toBe(birthOf(value()));
  expect(birthOf(value({ exclude: ["10.1.0.9"] }, { spare: 3 }))).toBe(birthOf(value()));
});

test("a pool whose record has become none stays, and nothing of it is unwanted", () => {
  const [pool] = poolsOfNode([], known, grants, {}, ["pool/lan is no record: x"]);
  expect(pool).toMatchObject({ obstacle: "pool/lan is no record: x", isUnclear: true, size: 15 });
});

test("what may change, counts at once", () => {
  const [pool] = poolsOfNode(listed(value({ exclude: ["10.1.0.9"] }, { spare: 3 })), known, grants, {});
  expect([pool!.obstacle, pool!.pool.spare, pool!.pool.ranges[0]!.excluded.length]).toEqual([undefined, 3, 1]);
});

test("without blocks here, the pool is what the store says, or gone", () => {
  expect(poolsOfNode(listed(value({ blockSize: 8 }), "2"), known, [], {})[0]).toMatchObject({
    kept: { birth: "2" },
    size: 31,
  });
  expect(poolsOfNode([], known, [], {})).toEqual([]);
});

test("a pool for other nodes is not claimed of", () => {
  const ofRack = listed(value({}, { nodes: { matchLabels: { rack: "1" } } }));
  expect(poolsOfNode(ofRack, [], [], { rack: "2" })[0]!.obstacle).toBe("it is for nodes with the label rack=1");
  expect(poolsOfNode(ofRack, [], [], { rack: "1" })[0]!.obstacle).toBeUndefined();
});
