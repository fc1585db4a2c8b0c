/** patchbay-cluster without a kernel: what is given out of which blocks, and to whom. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { POOLS_OF_TESTS, PoolStage } from "../../../support/pool-stage.ts";

let stage: PoolStage;
beforeEach(() => void (stage = new PoolStage()));
afterEach(() => stage[Symbol.dispose]());

const addresses = (result: { ips?: { address: string }[] }) => result.ips!.map(({ address }) => address);

describe("ADD", () => {
  test("gives an address of a block, with the subnet's prefix length; the lease says its network", () => {
    stage.serve({ routes: [{ dst: "0.0.0.0/0" }, { dst: "10.9.0.0/16", gw: "10.50.0.253" }] });
    expect(stage.add()).toEqual({
      cniVersion: "1.0.0",
      ips: [{ address: "10.50.0.16/24", gateway: "10.50.0.254" }],
      routes: [{ dst: "0.0.0.0/0" }, { dst: "10.9.0.0/16", gw: "10.50.0.253" }],
      dns: undefined,
    });
    expect(stage.leases()).toEqual({ "10.50.0.16": "c1\r\neth0\r\nnet" });
  });

  test("the configuration's routes stand before the pool's, and in their place", () => {
    stage.serve({ routes: [{ dst: "0.0.0.0/0" }, { dst: "10.9.0.0/16" }] });
    const routes = [{ dst: "10.8.0.0/16" }, { dst: "0.0.0.0/0", gw: "10.50.0.7" }];
    expect(stage.add({ ipam: { routes } }).routes).toEqual([...routes, { dst: "10.9.0.0/16" }]);
  });

  test("a routed pool: with the block's prefix length, and its gateway", () => {
    const ranges = [{ cidr: "10.64.0.0/16", blockLength: 26 }, { cidr: "fd64::/48", blockLength: 64 }];
    stage.serve({ layout: "routed", ranges, blocks: [2, 5] });
    expect(stage.add().ips).toEqual([
      { address: "10.64.0.130/26", gateway: "10.64.0.129" },
      { address: "fd64:0:0:2::2/64", gateway: "fd64:0:0:2::1" },
    ]);
    // One index for all blocks of IPv4, one where there are leases for IPv6.
    expect(stage.index()).toEqual(["10.64.0.0-16", "fd64:0:0:2::-116", "locks"]);
  });

  test("blocks of one address each, without a gateway", () => {
    stage.serve({ layout: "routed", ranges: [{ cidr: "10.64.0.0/24", blockLength: 32 }], blocks: [7, 200] });
    expect(["c1", "c2"].map((containerId) => stage.add({ containerId }).ips)).toEqual([
      [{ address: "10.64.0.7/32" }],
      [{ address: "10.64.0.200/32" }],
    ]);
    expect(() => stage.add({ containerId: "c3" })).toThrow("2 of 2 addresses in the 2 blocks");
  });

  test("goes round through all blocks, also when one comes or goes", () => {
    stage.serve({ blocks: [1, 3] });
    const next = (containerId: string) => addresses(stage.add({ containerId }))[0];
    for (let count = 0; count < 15; count++) next(`c${count}`);
    expect([next("x"), next("y")]).toEqual(["10.50.0.31/24", "10.50.0.48/24"]);
    stage.serve({ blocks: [1, 5] });
    stage.del({ containerId: "c3" });
    expect([next("z"), next("u")]).toEqual(["10.50.0.19/24", "10.50.0.80/24"]);
    expect(Object.keys(stage.leases())).toContain("10.50.0.48");
  });

  test("one attachment has one address, also when its block is no longer served", () => {
    stage.serve();
    stage.add();
    const again = "10.50.0.16 has been allocated to c1, duplicate allocation is not allowed";
    expect(() => stage.add()).toThrow(again);
    stage.serve({ blocks: [2] });
    expect(() => stage.add()).toThrow(again);
    expect(addresses(stage.add({ ifName: "eth1" }))).toEqual(["10.50.0.32/24"]);
    expect(addresses(stage.add({ network: "other" }))).toEqual(["10.50.0.33/24"]);
  });

  test("several pools give one address each, in their order; of routes to one destination the first counts", () => {
    stage.serve({ routes: [{ dst: "0.0.0.0/0" }] });
    const ranges = [{ cidr: "10.60.0.0/24", gateway: "10.60.0.1", blockSize: 8 }];
    stage.serve({ name: "storage", ranges, blocks: [3], routes: [{ dst: "0.0.0.0/0", gw: "10.60.0.2" }] });
    const ipam = { pool: undefined, pools: ["storage", "lan"] };
    expect(stage.add({ ipam })).toMatchObject({
      ips: [{ address: "10.60.0.25/24" }, { address: "10.50.0.16/24" }],
      routes: [{ dst: "0.0.0.0/0", gw: "10.60.0.2" }],
    });
    stage.del({ ipam });
    expect([stage.leases("storage"), stage.leases("lan")]).toEqual([{}, {}]);
  });

  test("what one pool has given goes back when another has none; an earlier lease stays", () => {
    stage.serve();
    stage.serve({ name: "storage", blocks: [] });
    const ipam = { pool: undefined, pools: ["lan", "storage"] };
    expect(() => stage.add({ ipam })).toThrow("pool storage");
    expect(stage.leases()).toEqual({});
    stage.add();
    expect(() => stage.add({ ipam, cniArgs: "IP=10.50.0.20" })).toThrow("pool storage");
    expect(Object.keys(stage.leases())).toEqual(["10.50.0.17"]);
  });

  test("of two families gives both, or none", () => {
    const ranges = [
      { cidr: "10.50.0.0/24", from: "10.50.0.16", to: "10.50.0.17", blockSize: 2 },
      { cidr: "fd50::/64", from: "fd50::10", to: "fd50::10", blockSize: 1 },
    ];
    stage.serve({ ranges, blocks: [0] });
    expect(addresses(stage.add())).toEqual(["10.50.0.16/24", "fd50::10/64"]);
    expect(() => stage.add({ containerId: "c2" })).toThrow(
      "pool lan (fd50::/64): 1 of 1 addresses in the 1 block of this node n1 are in use",
    );
    expect(Object.keys(stage.leases())).toEqual(["10.50.0.16", "fd50::10"]);
  });

  test("reads DNS settings from resolvConf", () => {
    stage.serve();
    const resolvConf = join(stage.directory, "resolv.conf");
    writeFileSync(resolvConf, "nameserver 10.9.9.9\nsearch a b\n");
    expect(stage.add({ ipam: { resolvConf } }).dns).toEqual({ nameservers: ["10.9.9.9"], search: ["a", "b"] });
  });
});

describe("a configuration that names no pool", () => {
  const refused: [string, Record<string, unknown>, string][] = [
    ["none", { pool: undefined }, '"ipam.pool": it is missing: "pool": "NAME"'],
    ["an empty list", { pool: undefined, pools: [] }, '"ipam.pool": it is missing'],
    ["both keys", { pools: ["a"] }, '"ipam.pools": "ipam.pool" is there, too'],
    ["one twice", { pool: undefined, pools: ["a", "b", "a"] }, '"ipam.pools": "a" is there twice'],
    ["a path", { pool: "../networks" }, '"ipam.pool": "../networks" is no name of a pool'],
    ["dots", { pool: ".." }, '"ipam.pool": ".." is no name of a pool'],
  ];
  test.each(refused)("%s", (_, ipam, message) => {
    expect(() => stage.add({ ipam })).toThrow(
      expect.objectContaining({ code: 7, message: expect.stringContaining(message) }),
    );
    expect(existsSync(join(stage.directory, POOLS_OF_TESTS))).toBe(false);
    // DEL judges nothing, and touches nothing outside.
    stage.del({ ipam });
  });

  test("several in a version that knows one address of each family", () => {
    const conf = stage.conf({ rest: { cniVersion: "0.2.0" }, ipam: { pool: undefined, pools: ["a", "b"] } });
    expect(() => stage.judge(conf)).toThrow("CNI version 0.2.0 does not support more than 1 address per family");
  });
});

describe("networks that share a pool", () => {
  test("share its addresses, and only take back their own", () => {
    stage.serve();
    stage.add();
    stage.add({ network: "other" });
    expect(stage.leases()).toEqual({ "10.50.0.16": "c1\r\neth0\r\nnet", "10.50.0.17": "c1\r\neth0\r\nother" });
    stage.del({ network: "third" });
    stage.del();
    expect(Object.keys(stage.leases())).toEqual(["10.50.0.17"]);
    stage.add();
    stage.gc("net", []);
    expect(stage.leases()).toEqual({ "10.50.0.17": "c1\r\neth0\r\nother" });
    stage.gc("other", ["c1"]);
    expect(Object.keys(stage.leases())).toEqual(["10.50.0.17"]);
    stage.gc("other", ["c2"]);
    expect(stage.leases()).toEqual({});
  });

  test("CHECK knows whose a lease is", () => {
    stage.serve();
    stage.add();
    expect(stage.check()).toEqual([]);
    expect(stage.check({ network: "other" })).toEqual([
      "patchbay-cluster: Failed to find address added by container c1 in pool lan",
    ]);
  });
});

describe("DEL", () => {
  test("needs no file, nor that the block is served", () => {
    stage.serve();
    stage.add();
    rmSync(stage.state, { recursive: true });
    stage.del();
    stage.del();
    expect(stage.leases()).toEqual({});
  });

  test("finds the lease when the configuration has another pool since, or none; so does GC", () => {
    const prevResult = { cniVersion: "1.0.0", ips: [{ address: "10.50.0.16/24" }] };
    for (const ipam of [{ pool: "new" }, { pool: undefined }]) {
      for (
        const release of [
          () => stage.del({ ipam, prevResult }),
          () => stage.del({ ipam }),
          () => stage.gc("net", [], ipam),
        ]
      ) {
        stage.serve();
        stage.add({ cniArgs: "IP=10.50.0.16" });
        stage.add({ network: "other" });
        release();
        expect(Object.values(stage.leases())).toEqual(["c1\r\neth0\r\nother"]);
        stage.del({ network: "other" });
      }
    }
  });
});

describe("the store is made for pools alone that are served", () => {
  test("so a misspelt name leaves nothing", () => {
    stage.serve();
    expect(() => stage.add({ ipam: { pool: "lna" } })).toThrow("pool lna: nothing of it has been served");
    expect(existsSync(join(stage.directory, POOLS_OF_TESTS))).toBe(false);
  });

  test("what people put into it is reserved", () => {
    stage.serve();
    mkdirSync(stage.pool(), { recursive: true });
    writeFileSync(join(stage.pool(), "10.50.0.16"), "printer in room 5");
    expect(addresses(stage.add())).toEqual(["10.50.0.17/24"]);
    stage.gc("net", []);
    expect(readFileSync(join(stage.pool(), "10.50.0.16"), "utf8")).toBe("printer in room 5");
  });
});
