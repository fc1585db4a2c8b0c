/** Pools of Whereabouts and nv-ipam, out of what kubectl prints; and what is wrong in it, with its key and value. */
import { describe, expect, test } from "bun:test";
import { asSubnets, whereaboutsUse } from "../../src/cluster/from-whereabouts.ts";
import { nvIpamPool } from "../../src/cluster/from-nv-ipam.ts";
import { poolFrom } from "../../src/cluster/pool-decoding.ts";
import { piecesOf } from "../../src/cluster/pool.ts";
import { errorText } from "../../src/cni/error.ts";
import { formatAddress, parseAddress } from "../../src/net/address.ts";

const listOf = (...items: unknown[]) => ({ apiVersion: "v1", kind: "List", items });

const ofWhereabouts = (kind: string, name: string, spec: unknown) => ({
  apiVersion: "whereabouts.cni.cncf.io/v1alpha1",
  kind,
  metadata: { name, namespace: "kube-system" },
  spec,
});
const given = { id: "c", podref: "default/a", ifname: "eth0" };
const ipPool = (range: unknown, offsets: readonly string[]) =>
  ofWhereabouts("IPPool", "p", { range, allocations: Object.fromEntries(offsets.map((offset) => [offset, given])) });
const reservation = (name: string) => ofWhereabouts("OverlappingRangeIPReservation", name, given);

const saying = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return errorText(error);
  }
  return "";
};

describe("Whereabouts", () => {
  test("all that is in use, of every pool and reservation that has to do with the subnet", () => {
    const { subnet, used } = whereaboutsUse(
      listOf(
        ipPool("10.0.0.0/24", ["1", "2", "3", "9"]),
        ipPool("10.0.0.128/25", ["5"]),
        ipPool("10.9.0.0/24", ["7"]),
        ipPool("10.0.0.0/23", ["300"]),
        reservation("10.0.0.77"),
        reservation("vlan-7-10.0.0.78"),
        reservation("fd00--7"),
        { apiVersion: "v1", kind: "Pod", metadata: { name: "x" } },
        ofWhereabouts("NodeSlicePool", "s", { range: "10.0.0.0/24", sliceSize: "/26" }),
      ),
      "10.0.0.0/24",
    );
    expect([subnet, used.map(formatAddress)]).toEqual([
      "10.0.0.0/24",
      ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9", "10.0.0.77", "10.0.0.78", "10.0.0.133"],
    ]);
  });

  test("IPv6; a range with host bits counts from what is written", () => {
    const { subnet, used } = whereaboutsUse(
      listOf(ipPool("fd00:1::/64", ["1", "18446744073709551615"]), reservation("net-fd00-1--aa")),
      undefined,
    );
    expect([subnet, used.map(formatAddress)]).toEqual([
      "fd00:1::/64",
      ["fd00:1::1", "fd00:1::aa", "fd00:1::ffff:ffff:ffff:ffff"],
    ]);
    expect(whereaboutsUse(listOf(ipPool("10.0.0.225/28", ["1"])), undefined).used.map(formatAddress)).toEqual([
      "10.0.0.226",
    ]);
  });

  test("neighbours are one subnet", () => {
    const addresses = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, at) => parseAddress(`10.0.0.${from + at}`)!);
    expect(asSubnets([])).toEqual([]);
    expect(asSubnets(addresses(1, 10))).toEqual([
      "10.0.0.1",
      "10.0.0.2/31",
      "10.0.0.4/30",
      "10.0.0.8/31",
      "10.0.0.10",
    ]);
    expect(asSubnets(addresses(0, 255))).toEqual(["10.0.0.0/24"]);
    expect(asSubnets([...addresses(4, 5), ...addresses(7, 7)])).toEqual(["10.0.0.4/31", "10.0.0.7"]);
  });

  const long = "x".repeat(1024 * 1024);
  test.each(
    [
      [[], "it is no object"],
      [{ items: {} }, '"items": {} is no list'],
      [listOf(), '"items": nothing of whereabouts.cni.cncf.io'],
      [listOf(7), '"items[0]": 7 is no object'],
      [listOf({ ...ipPool("10.0.0.0/24", []), apiVersion: 1 }), '"items[0].apiVersion": 1 is no text'],
      [listOf({ ...ipPool("10.0.0.0/24", []), metadata: null }), '"items[0].metadata": null is no object'],
      [listOf({ ...ipPool("10.0.0.0/24", []), spec: undefined }), '"items[0].spec"'],
      [listOf(ipPool(8, [])), '"items[0].spec.range": 8 is no text'],
      [listOf(ipPool("10.0.0.0/33", [])), '"items[0].spec.range": "10.0.0.0/33" is no subnet'],
      [listOf(ipPool("10.0.0.0/24", ["256"])), '"items[0].spec.allocations.256": it is not in 10.0.0.0/24'],
      [listOf(ipPool("10.0.0.0/24", ["-1"])), 'allocations.-1": "-1" is no offset'],
      [listOf(ipPool("255.255.255.0/24", ["9".repeat(39)])), "it is not in 255.255.255.0/24"],
      [listOf(ipPool("10.0.0.0/24", [long])), "is no offset"],
      [listOf(ofWhereabouts("IPPool", "p", { range: "10.0.0.0/24", allocations: [] })), "allocations"],
      [listOf(ipPool("10.0.0.0/24", []), reservation("nobody")), '"items[1].metadata.name": "nobody" has no address'],
      [listOf(ipPool("10.0.0.0/24", []), reservation(long.replaceAll("x", "-"))), "has no address"],
      [listOf(ofWhereabouts("IPPools", "p", {})), '"--subnet": there is no IPPool'],
      [listOf(ipPool("10.0.0.0/24", []), ofWhereabouts("Other", "p", {})), '"items[1].kind": "Other" is none of'],
      [listOf(ipPool("10.0.0.0/24", []), ipPool("10.1.0.0/24", [])), "it says which: 10.0.0.0/24, 10.1.0.0/24"],
    ] as [unknown, string][],
  )("%#: refused with its key", (document, said) => {
    const text = saying(() => whereaboutsUse(document, undefined));
    expect(text).toContain(said);
    expect(text.length).toBeLessThan(600);
  });
});

const ofNvIpam = (kind: string, name: string, spec: unknown, allocations: unknown) => ({
  apiVersion: "nv-ipam.nvidia.com/v1alpha1",
  kind,
  metadata: { name },
  spec,
  status: { allocations },
});
const SPEC = { subnet: "192.168.0.0/16", perNodeBlockSize: 100, gateway: "192.168.0.1" };
const CIDR = { cidr: "10.48.0.0/16", gatewayIndex: 1, perNodeNetworkPrefix: 24 };

describe("nv-ipam", () => {
  test("an IPPool: the same blocks", () => {
    const exclusions = [{ startIP: "192.168.0.10", endIP: "192.168.0.13" }];
    const { name, document, blocks } = nvIpamPool(
      listOf(ofNvIpam("IPPool", "pool1", { ...SPEC, exclusions }, [
        { nodeName: "host-a", startIP: "192.168.0.1", endIP: "192.168.0.100" },
        { nodeName: "host-b", startIP: "192.168.0.201", endIP: "192.168.1.44" },
      ])),
      undefined,
    );
    expect([name, [...blocks]]).toEqual(["pool1", [["host-a", 0], ["host-b", 2]]]);
    const pool = poolFrom(name, document), [piece] = piecesOf(pool, 2);
    expect([formatAddress(piece!.first), formatAddress(piece!.last)]).toEqual(["192.168.0.201", "192.168.1.44"]);
    expect(document).toMatchObject({
      layout: "flat",
      state: "closed",
      ranges: [{ gateway: "192.168.0.1", exclude: ["192.168.0.10/31", "192.168.0.12/31"] }],
    });
  });

  test("a CIDRPool: each block a subnet, and what is to be written by hand", () => {
    const spec = { ...CIDR, routes: [{ dst: "1.0.0.0/8" }], nodeSelector: {} };
    const { document, blocks, notes } = nvIpamPool(
      listOf(
        ofNvIpam("CIDRPool", "c", spec, [{ nodeName: "a", prefix: "10.48.7.0/24", gateway: "10.48.7.1" }]),
        ofNvIpam("IPPool", "other", SPEC, []),
      ),
      "c",
    );
    expect(document).toEqual({
      layout: "routed",
      state: "closed",
      ranges: [{ cidr: "10.48.0.0/16", blockLength: 24 }],
    });
    expect([[...blocks], notes.length]).toEqual([[["a", 7]], 2]);
  });

  const pool = (spec: unknown, ...allocations: unknown[]) => listOf(ofNvIpam("IPPool", "p", spec, allocations));
  const one = { nodeName: "a", startIP: "192.168.0.1", endIP: "192.168.0.100" };
  test.each(
    [
      [pool({ ...SPEC, perNodeBlockSize: "100" }), '"items[0].spec.perNodeBlockSize": "100" is no whole number'],
      [pool({ ...SPEC, perNodeBlockSize: 1e9 }), "is no count from 1 to 65536"],
      [pool({ ...SPEC, subnet: "192.168.0.1/16" }), "has bits set behind its prefix"],
      [pool({ ...SPEC, gateway: "10.0.0.1" }), '"10.0.0.1" is not in 192.168.0.0/16'],
      [pool(SPEC, one, { ...one, nodeName: "b" }), '"items[0].status.allocations[1]": "b" has the block of "a"'],
      [pool(SPEC, one, { ...one, startIP: "192.168.0.101", endIP: "192.168.0.200" }), '"a" has two blocks'],
      [pool(SPEC, { ...one, startIP: "192.168.0.2" }), "192.168.0.2-192.168.0.100 is no block of the pool"],
      [pool(SPEC, { ...one, startIP: "10.0.0.1" }), "is no block of the pool"],
      [pool(SPEC, { ...one, nodeName: 7 }), "nodeName"],
      [
        pool({ ...SPEC, exclusions: [{ startIP: "192.168.0.9", endIP: "192.168.0.2" }] }),
        "192.168.0.2 is before 192.168.0.9",
      ],
      [pool({ ...SPEC, exclusions: "all" }), '"items[0].spec.exclusions": "all" is no list'],
      [listOf(ofNvIpam("CIDRPool", "p", { ...CIDR, gatewayIndex: 5 }, [])), '"items[0].spec.gatewayIndex": 5'],
      [listOf(ofNvIpam("Other", "p", {}, [])), '"Other" is neither IPPool nor CIDRPool'],
      [listOf(ofNvIpam("IPPool", "p", SPEC, []), ofNvIpam("IPPool", "q", SPEC, [])), "it says which: p, q"],
      [listOf(ofNvIpam("IPPool", "A B", SPEC, [])), "is no name of a pool"],
    ] as [unknown, string][],
  )("%#: refused with its key", (document, said) => {
    const text = saying(() => nvIpamPool(document, undefined));
    expect(text).toContain(said);
    expect(text.length).toBeLessThan(600);
  });
});
