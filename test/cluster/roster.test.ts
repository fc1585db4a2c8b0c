/** A cluster that is written by hand: what its files say, and what is wrong with them. */
import { expect, test } from "bun:test";
import { type Roster, type RosterFile, rosterFrom } from "../../src/cluster/roster.ts";

const file = (name: string, value: unknown): RosterFile => ({
  name,
  path: `/etc/${name}`,
  text: typeof value === "string" ? value : JSON.stringify(value),
});
const pool = file("lan", { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", blockSize: 16 }] });

test("each node has its blocks, one by one and by ranges", () => {
  const roster = rosterFrom([pool], [
    file("n1", { blocks: { lan: [0, "4-6"] } }),
    file("n2", { blocks: { lan: ["1"] } }),
    file("n3", { blocks: {} }),
  ]) as Roster;
  expect([...roster.pools.keys()]).toEqual(["lan"]);
  expect([...roster.blocks].map(([node, own]) => [node, own.get("lan")])).toEqual([
    ["n1", [0, 4, 5, 6]],
    ["n2", [1]],
    ["n3", undefined],
  ]);
});

test.each<[string, RosterFile[], RosterFile[], string[]]>([
  ["a block of two nodes", [pool], [file("n1", { blocks: { lan: ["0-3"] } }), file("n2", { blocks: { lan: [3] } })], [
    "/etc/n2: block 3 of pool lan stands in /etc/n1, too",
  ]],
  ["a block twice in one", [pool], [file("n1", { blocks: { lan: [1, "0-1"] } })], [
    "/etc/n1: block 1 of pool lan stands in /etc/n1, too",
  ]],
  ["a pool that is not there", [pool], [file("n1", { blocks: { wan: [0] } })], [
    '/etc/n1: "blocks.wan": there is no such pool',
  ]],
  ["a block behind the last", [pool], [file("n1", { blocks: { lan: [15] } })], [
    '/etc/n1: "blocks.lan": 15 is behind the last block, 14',
  ]],
  ["no block", [pool], [file("n1", { blocks: { lan: [-1] } })], [
    '/etc/n1: "blocks.lan": -1 is neither a block nor "4-7"',
  ]],
  ["a range backwards", [pool], [file("n1", { blocks: { lan: ["3-1"] } })], [
    '/etc/n1: "blocks.lan": "3-1" is neither a block nor "4-7"',
  ]],
  ["no list", [pool], [file("n1", { blocks: { lan: 1 } })], ['/etc/n1: "blocks.lan": 1 is no list']],
  ["without blocks", [pool], [file("n1", {})], [
    '/etc/n1: "blocks" is missing: { "blocks": { "POOL": [0, "4-7"] } }',
  ]],
  ["another key", [pool], [file("n1", { blocks: {}, block: {} })], ['/etc/n1: "block" is not known']],
])("%s: nothing of it counts", (_, pools, nodes, problems) => {
  expect(rosterFrom(pools, nodes)).toEqual({ problems });
});

test("files that are half there: each says why", () => {
  const { problems } = rosterFrom([file("lan", "{"), file("P", {})], [file("n1", "")]) as { problems: string[] };
  expect(problems.map((each) => each.split(":")[0])).toEqual(["/etc/lan", "/etc/P", "/etc/n1"]);
});
