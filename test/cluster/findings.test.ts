/** What is said of records that are not as they should be: about what, and what to type. */
import { describe, expect, test } from "bun:test";
import {
  alarmObstacles,
  type ClusterFinding,
  type ClusterRecords,
  inShort,
  recordsFindings,
} from "../../src/cluster/findings.ts";
import {
  grantedLeaseFindings,
  grantFindings,
  type HostBlocks,
  selfFindings,
} from "../../src/cluster/host-findings.ts";
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
      "block/lan.3: containers of n1 have its addresses, and the store says that it is another's → 'patchbay ipam check' " +
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
      "node/n1: it has block/lan.0 of a pool that was deleted and made anew: it gives them back as they become empty, and " +
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
      "containers of n1 have addresses of block/lan.3, which is another node's",
    ],
    ["one cannot be read", { problems: ["node/n3 is no record: no"] }, "node/n3 is no record: no"],
  ])("not while %s", (_, more, why) => {
    expect(alarmObstacles(alarm, records({ nodes: new Map([["n1", heard]]), ...more }))).toEqual([why]);
  });
});

const self = { node: "n1", machine: "aaaaaaaaaaaa", boot: "b" };
const host = (more: Partial<HostBlocks> = {}): HostBlocks => ({
  self,
  held: { generation: 1, boots: ["b"], grants: [], seen: 0 },
  isAgentRunning: true,
  leases: [],
  attached: [],
  leaseDirectory: "/var/lib/patchbay/pools",
  isUsualDirectory: true,
  ...more,
});
const holding = (key: string, state: "held" | "closing" = "held") => ({
  ...host().held,
  grants: [{ key, claim: "c0", state, version: 1 }],
});

describe("of this host", () => {
  const START = "start its agent: 'systemctl start patchbay-node', or 'patchbay node'";

  test.each<[string, Partial<HostBlocks>, NodeRecord | undefined, string[]]>([
    ["that is well", {}, node({ machine: self.machine }), []],
    ["without an agent", { isAgentRunning: false }, node({ machine: self.machine }), [
      `node/n1: no agent runs on this host → ${START}`,
    ]],
    ["without a record", {}, undefined, ["node/n1: the store has no record of this host → -"]],
    ["that is another machine", {}, node({ machine: "bbbbbbbbbbbb" }), [
      "node/n1: it is another machine, bbbbbbbb; this host is aaaaaaaa, and claims nothing → if that machine is off for " +
      "good, 'patchbay node replace n1 --it-is-off' here; if it runs, this host needs another name: \"node\" in " +
      "/etc/patchbay/cluster.json",
    ]],
    [
      "that is ahead of the store",
      { held: { ...host().held, generation: 3 } },
      node({ machine: self.machine, generation: 2 }),
      ["node/n1: the store has generation 2, and this host was 3: the store has lost something → -"],
    ],
    ["that is off", { isAgentRunning: false }, node({ machine: self.machine, state: "off" }), [
      `node/n1: no agent runs on this host → ${START}`,
      `node/n1: a person has said that this host is off → ${START}`,
    ]],
  ])("%s", (_, more, record, expected) => {
    expect(shown(selfFindings(host(more), record))).toEqual(expected);
  });

  test.each<[string, Partial<HostBlocks>, Stored<BlockRecord> | undefined, string[]]>([
    ["granted and its own", { held: holding("block/lan.0") }, block(0, ["n1", 1]), []],
    ["neither granted nor its own", {}, block(0, ["n2", 1]), []],
    ["claimed late", {}, block(0, ["n1", 1]), [
      "block/lan.0: it is this host's in the store, and not granted here: a claim that was answered late → the agent puts " +
      "it right within two minutes; 'patchbay node check' shows the alarm",
    ]],
    ["gone from the store, without an agent", { held: holding("block/lan.0"), isAgentRunning: false }, undefined, [
      `block/lan.0: it is nobody's in the store, and granted here → ${START}`,
    ]],
    ["given back, and the agent did not see it", { held: holding("block/lan.0", "closing") }, block(0), [
      "block/lan.0: it is nobody's in the store, and this host was giving it back → the agent puts it right within two " +
      "minutes; 'patchbay node check' shows the alarm",
    ]],
    [
      "another node's, and in use here",
      {
        held: holding("block/lan.0"),
        leases: [{ pool: "lan", address: "10.0.0.5", block: "block/lan.0", containerId: "c", isKnown: true }],
      },
      block(0, ["n2", 1]),
      [
        "block/lan.0: it is n2's in the store, and containers here have its addresses → the store was restored, or this " +
        "host was removed while it ran: detach the containers that have its addresses, here or on n2",
      ],
    ],
  ])("a block %s", (_, more, record, expected) => {
    expect(shown(grantFindings(host(more), new Map([["block/lan.0", record]])))).toEqual(expected);
  });

  const lease = {
    pool: "lan",
    address: "10.0.0.5",
    block: "block/lan.0",
    containerId: "c",
    ifName: "eth0",
    isKnown: true,
  };

  test.each<[string, Partial<HostBlocks>, string[]]>([
    ["in a granted block, of a known container", { leases: [lease], held: holding("block/lan.0") }, []],
    ["in a block that is not granted", { leases: [lease] }, [
      "10.0.0.5: container c (eth0) leases it, in block/lan.0, which this host has not been granted → detach the " +
      "container: another node may give the address out",
    ]],
    ["outside of the pool", { leases: [{ ...lease, block: undefined }] }, [
      "10.0.0.5: container c (eth0) leases it, outside of the pool → detach the container: another node may give the " +
      "address out",
    ]],
    ["of a container that nobody knows", { leases: [{ ...lease, isKnown: false }], held: holding("block/lan.0") }, [
      "10.0.0.5: container c (eth0) leases it, and no record knows that container → when it is gone, 'patchbay ipam " +
      "release lan 10.0.0.5 --data-dir /var/lib/patchbay/pools' gives the address back",
    ]],
    [
      "of one that nobody knows in its network",
      { leases: [{ ...lease, inNetwork: "net", isKnown: false }], held: holding("block/lan.0") },
      [
        "10.0.0.5: container c (eth0) leases it, and no record knows that container → when it is gone, 'patchbay ipam " +
        "release net 10.0.0.5' gives the address back",
      ],
    ],
    ["that is a reservation", { leases: [{ ...lease, containerId: undefined, isKnown: false }] }, []],
    ["of an attachment with a lease", {
      leases: [lease],
      held: holding("block/lan.0"),
      attached: [{ pool: "lan", address: "10.0.0.5", network: "net", containerId: "c" }],
    }, []],
    ["missing of an attachment", {
      attached: [{ pool: "lan", address: "10.0.0.5", network: "net", containerId: "c" }],
    }, [
      "10.0.0.5: container c has it in network net, and no lease says so: another may get it → attach it anew: 'patchbay " +
      "del net c', then add",
    ]],
  ])("a lease %s", (_, more, expected) => {
    expect(shown(grantedLeaseFindings(host(more)))).toEqual(expected);
  });
});
