/** What is said of records that are not as they should be: about what, and what to type. */
import { describe, expect, test } from "bun:test";
import {
  alarmObstacles,
  type ClusterFinding,
  type ClusterRecords,
  inShort,
  recordsFindings,
} from "../../src/cluster/findings.ts";
import { overlapsAmong } from "../../src/cluster/overlaps.ts";
import { poolFrom } from "../../src/cluster/pool-decoding.ts";
import type { AlarmRecord, BlockRecord, NodeRecord, Stored } from "../../src/cluster/records.ts";

const flat = (name: string, range: object) =>
  poolFrom(name, { layout: "flat", ranges: [{ blockSize: 16, ...range }] });
const lan = flat("lan", { cidr: "10.0.0.0/24" });

const stored = <Value>(key: string, value: Value): Stored<Value> => ({
  key,
  value,
  version: 1,
  birth: "b",
  isGoing: false,
});
const node = (more: Partial<NodeRecord> = {}): NodeRecord => ({
  generation: 1,
  machine: "m",
  boot: "b",
  state: "joined",
  ...more,
});
const block = (index: number, owner?: [node: string, generation: number], poolBirth = "1", pool = "lan") =>
  stored<BlockRecord>(`block/${pool}.${index}`, {
    poolBirth,
    index,
    ...owner && { owner: { node: owner[0], generation: owner[1], claim: `c${index}` } },
  });
const alarm = stored<AlarmRecord>("alarm", { by: "n1", saw: "block/lan.3 is no longer n1's in the store" });

function records(more: Partial<ClusterRecords> = {}): ClusterRecords {
  return {
    pools: new Map([["lan", { pool: lan, birth: "1" }]]),
    nodes: new Map([["n1", node()]]),
    blocks: [],
    problems: [],
    ...more,
  };
}

const shown = (findings: readonly ClusterFinding[]) =>
  findings.map(({ about, problem, step = "-" }) => `${about}: ${problem} → ${step}`);

describe("of the store's records", () => {
  test("nothing, when all is well", () => {
    expect(recordsFindings(records({ blocks: [block(0, ["n1", 1]), block(1)] }))).toEqual([]);
  });

  test("what is no record is named by its key", () => {
    expect(shown(recordsFindings(records({ problems: ['pool/x is no record: "ranges" is missing'] })))).toEqual([
      'pool/x: it is no record: "ranges" is missing → nothing of it counts: correct or delete it where the store is, or ' +
      "upgrade this program",
    ]);
  });

  test.each<[string, Partial<ClusterRecords>, string[]]>([
    ["an alarm", { alarm }, [
      "alarm: n1 has raised it: block/lan.3 is no longer n1's in the store → 'patchbay node check' says who has looked since",
    ]],
    ["a contested node", { nodes: new Map([["n1", node({ isContested: true })]]) }, [
      "node/n1: two machines that run say that they are this node → stop one of them; then 'patchbay node replace n1 " +
      "--it-is-off' on the other",
    ]],
    ["a conflict", { nodes: new Map([["n1", node({ conflicts: ["block/lan.3"] })]]) }, [
      "block/lan.3: containers of n1 have its addresses, and the store gives it to another, or to nobody → 'patchbay ipam check' " +
      "on n1 says which containers: detach them, or those of the other node",
    ]],
    [
      "blocks of a node that is off",
      { nodes: new Map([["n1", node({ state: "off" })]]), blocks: [block(2, ["n1", 1])] },
      [
        "node/n1: it is off by a person's word, and still has block/lan.2 → 'patchbay node remove n1 --it-is-off', once " +
        "more, frees them",
      ],
    ],
    [
      "blocks of an earlier generation",
      { nodes: new Map([["n1", node({ generation: 2 })]]), blocks: [block(2, ["n1", 1]), block(3, ["n1", 2])] },
      [
        "node/n1: it was removed, runs again without block/lan.2, and they were not freed → 'patchbay node remove n1' " +
        "frees them, and nothing else",
      ],
    ],
    ["blocks of a node without a record", { blocks: [4, 10, 2, 3, 1].map((index) => block(index, ["n9", 1])) }, [
      "node/n9: it has block/lan.1, block/lan.2, block/lan.3 and 2 more, and no record → its agent writes the record when " +
      "it runs; for a machine that is off for good, 'patchbay node remove n9 --it-is-off'",
    ]],
    ["blocks without a pool", { blocks: [block(0, ["n1", 1], "1", "wan")] }, [
      "node/n1: it has block/wan.0, and the store has no such pool: it gives them back as they become empty → -",
    ]],
    ["blocks of an earlier pool", { blocks: [block(0, ["n1", 1], "0")] }, [
      "node/n1: it has block/lan.0 of a pool that was deleted, or cut in another way: it gives them back as they become empty, and " +
      "nothing of the pool is claimed before → -",
    ]],
    ["blocks behind the last one", { blocks: [block(15, ["n1", 1])] }, [
      "node/n1: it has block/lan.15, behind the pool's last block: the pool's ranges have become others, which they must " +
      "not → give the pool the ranges that it had, and make another pool for others",
    ]],
    ["a single that the pool does not list", { blocks: [block(1048777, ["n1", 1])] }, [
      "node/n1: it has block/lan.1048777, single addresses that the pool no longer lists: it gives them back as they " +
      'become empty → put them back into "singles", or into "exclude"',
    ]],
  ])("%s", (_, more, expected) => {
    expect(shown(recordsFindings(records(more)))).toEqual(expected);
  });

  test("pools with addresses in common may be meant so", () => {
    const wan = flat("wan", { cidr: "10.0.0.128/25" });
    const found = recordsFindings(
      records({ pools: new Map([["lan", { pool: lan, birth: "1" }], ["wan", { pool: wan, birth: "2" }]]) }),
    );
    expect(found).toMatchObject([{ about: "pools lan and wan", isNote: true }]);
    expect(found[0]!.problem).toStartWith("both have 10.0.0.129-10.0.0.254:");
  });
});

test("only what blocks may have counts as common", () => {
  const one = flat("one", { cidr: "10.0.0.0/24", to: "10.0.0.100" });
  const other = flat("other", { cidr: "10.0.0.0/24", from: "10.0.0.101" });
  const v6 = poolFrom("v6", { layout: "routed", ranges: [{ cidr: "fd00::/56", blockLength: 64 }] });
  expect(overlapsAmong([one, other, v6])).toEqual([]);
  expect(overlapsAmong([one, lan])).toEqual([{ pools: ["one", "lan"], addresses: "10.0.0.1-10.0.0.100" }]);
});

test("keys in short are in the order of their numbers", () => {
  expect(inShort(["block/lan.10", "block/lan.9"])).toBe("block/lan.9, block/lan.10");
});

describe("an alarm is over", () => {
  const heard = node({ heard: "b" });

  test("when all have looked since", () => {
    const all = new Map([["n1", heard], ["n2", node({ state: "off" })]]);
    expect(alarmObstacles(alarm, records({ nodes: all, blocks: [block(0, ["n1", 1]), block(1, ["n2", 1])] })))
      .toEqual([]);
  });

  test.each<[string, Partial<ClusterRecords>, string]>([
    [
      "one has not looked",
      { nodes: new Map([["n1", heard], ["n2", node({ heard: "a" })]]) },
      "n2 has not looked since",
    ],
    ["one has no record", { blocks: [block(0, ["n9", 1])] }, "n9 has blocks, and no record"],
    [
      "one disagrees",
      { nodes: new Map([["n1", { ...heard, conflicts: ["block/lan.3"] }]]) },
      "containers of n1 have addresses of block/lan.3, which the store gives to another, or to nobody",
    ],
    ["one cannot be read", { problems: ["node/n3 is no record: no"] }, "node/n3 is no record: no"],
  ])("not while %s", (_, more, why) => {
    expect(alarmObstacles(alarm, records({ nodes: new Map([["n1", heard]]), ...more }))).toEqual([why]);
  });
});
