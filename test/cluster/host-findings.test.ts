/** What is said of a host and the store, its blocks, leases and containers when they do not agree. */
import { describe, expect, test } from "bun:test";
import type { ClusterFinding } from "../../src/cluster/findings.ts";
import {
  foreignHostFindings,
  grantedLeaseFindings,
  grantFindings,
  type HostBlocks,
  selfFindings,
} from "../../src/cluster/host-findings.ts";
import type { BlockRecord, NodeRecord, Stored } from "../../src/cluster/records.ts";

const node = (more: Partial<NodeRecord> = {}): NodeRecord => ({
  generation: 1,
  machine: "m",
  boot: "b",
  state: "joined",
  ...more,
});

function block(index: number, owner?: [node: string, generation: number]): Stored<BlockRecord> {
  const [name = "", generation = 0] = owner ?? [], its = { node: name, generation, claim: `c${index}` };
  const value = { poolBirth: "1", index, ...owner && { owner: its } };
  return { key: `block/lan.${index}`, value, version: 1, birth: "b", isGoing: false };
}

const shown = (findings: readonly ClusterFinding[]) =>
  findings.map(({ about, problem, step = "-" }) => `${about}: ${problem} → ${step}`);

const self = { node: "n1", machine: "aaaaaaaaaaaa", boot: "b" };
const host = (more: Partial<HostBlocks> = {}): HostBlocks => ({
  self,
  held: { generation: 1, boots: ["b"], grants: [], seen: 0 },
  isAgentRunning: true,
  leases: [],
  attached: [],
  foreign: [],
  leaseDirectory: "/var/lib/patchbay/pools",
  isUsualDirectory: true,
  ...more,
});
const holding = (key: string, state: "held" | "closing" | "unknown" = "held") => ({
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
    ...([[7, "7 s"], [119, "119 s"], [120, "2 min"], [7199, "119 min"], [7200, "2 h"], [900_000, "250 h"]] as const)
      .map((
        [secondsSinceSync, time],
      ): [string, Partial<HostBlocks>, NodeRecord, string[]] => [
        `without an agent, and synced ${time} ago`,
        { isAgentRunning: false, secondsSinceSync },
        node({ machine: self.machine }),
        [`node/n1: no agent runs on this host → 'patchbay node sync' has done what was due, ${time} ago`],
      ]),
    ["that has an agent, and was synced", { secondsSinceSync: 7 }, node({ machine: self.machine }), []],
    ["without a record", {}, undefined, ["node/n1: the store has no record of this host → -"]],
    ["that is another machine", {}, node({ machine: "bbbbbbbbbbbb" }), [
      "node/n1: in the store it is machine bbbbbbbb; this host is machine aaaaaaaa, and claims nothing → if that machine " +
      "is off for good, 'patchbay node replace n1 --it-is-off' here; if it runs, this host needs another name: \"node\" " +
      "in /etc/patchbay/cluster.json",
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

  test("what sync does is to be known, and not wrong", () => {
    const notes = (more: Partial<HostBlocks>) =>
      selfFindings(host({ isAgentRunning: false, ...more }), node({ machine: self.machine })).map(({ isNote }) =>
        isNote
      );
    expect([notes({ secondsSinceSync: 0 }), notes({})]).toEqual([[true], [undefined]]);
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
    ["whose addresses nobody knows", { held: holding("block/lan.0", "unknown") }, block(0, ["n1", 1]), [
      "block/lan.0: it is not served: this host's state directory was emptied while containers ran, and nobody knows " +
      "which addresses they have → the next boot serves it",
    ]],
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
    ["that says its network, in a block that is not granted", { leases: [{ ...lease, inNetwork: "net" }] }, [
      "10.0.0.5: container c (eth0) leases it, in block/lan.0, which this host has not been granted → 'patchbay del net " +
      "c': another node may give the address out",
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

  test("an address that a host of the segment has", () => {
    expect(shown(foreignHostFindings(host({ foreign: ["10.0.0.9"] })))).toEqual([
      "10.0.0.9: another host of the segment has it, although it is the pool's: it is given to nobody here → take it from " +
      'that host, or put it into "exclude" of the pool\'s range',
    ]);
  });
});
