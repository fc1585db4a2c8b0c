/** Records with every field that they may have: a kind of Kubernetes drops what it does not know. */
import type { ClusterRecord } from "../../src/cluster/effects.ts";

export const everyField: Readonly<Record<string, ClusterRecord>> = {
  "pool/flat-fields": {
    layout: "flat",
    state: "open",
    ranges: [
      {
        ...{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", from: "10.1.0.10", to: "10.1.0.200", blockSize: 16 },
        exclude: ["10.1.0.20", "10.1.0.32/28"],
      },
      { cidr: "fd00:1::/64", gateway: "fd00:1::1", blockSize: 256 },
    ],
    singles: ["10.1.0.250"],
    probe: { link: "eth1.7" },
    routes: [{ dst: "0.0.0.0/0" }, { dst: "10.0.0.0/8", gw: "10.1.0.2" }],
    nodes: { matchLabels: { rack: "7", "example.org/zone": "a" } },
    spare: 2,
    mostBlocks: 7,
  } as ClusterRecord,
  "pool/routed-fields": { layout: "routed", state: "closed", ranges: [{ cidr: "10.2.0.0/16", blockLength: 26 }] },
  "node/every-field": {
    generation: 3,
    machine: "m",
    boot: "b",
    state: "draining",
    isContested: true,
    heard: "u2",
    conflicts: ["block/lan.3"],
  },
  "block/every.5": {
    poolBirth: "u",
    index: 5,
    owner: { node: "n1", generation: 3, claim: "c" },
    lastNode: "n2",
  },
  "block/single.4294967295": { poolBirth: "u", index: 4294967295, lastNode: "n2" },
  alarm: { by: "n1", saw: "block/lan.3 is no longer n1's" },
};
