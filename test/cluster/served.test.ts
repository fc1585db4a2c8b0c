/** Which addresses of a pool's blocks are given out. */
import { expect, test } from "bun:test";
import { poolFrom } from "../../src/cluster/pool-decoding.ts";
import { blockWith } from "../../src/cluster/pool.ts";
import { inNoBlock, servedAddresses } from "../../src/cluster/served.ts";
import { surroundings } from "../../src/cluster/served-file.ts";
import { formatAddress, formatPrefix, parseAddress, parsePrefix } from "../../src/net/address.ts";
import { servedRangesIn } from "../support/served-pool.ts";

/** With the subnet and the gateway of a container that has an address of it. */
const spans = (layout: string, range: object, ...blocks: number[]) => {
  const served = servedAddresses(poolFrom("p", { layout, ranges: [range] }), blocks), [extent] = served.extents;
  return servedRangesIn(served).map((text) => {
    const first = parseAddress(text.split("-")[0]!)!, pool = parsePrefix(extent!.subnet)!;
    const { subnet, gateway } = surroundings(first, extent!, pool);
    return `${text} ${formatPrefix(subnet)} ${gateway && formatAddress(gateway)}`;
  });
};

test("of a flat pool: without the gateway, and what is excluded, each block in its place", () => {
  const range = { cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16, exclude: ["10.1.0.20/30", "10.1.0.30"] };
  expect(spans("flat", range, 1, 0)).toEqual([
    "10.1.0.2-10.1.0.16 10.1.0.0/24 10.1.0.1",
    "10.1.0.17-10.1.0.19 10.1.0.0/24 10.1.0.1",
    "10.1.0.24-10.1.0.29 10.1.0.0/24 10.1.0.1",
    "10.1.0.31-10.1.0.32 10.1.0.0/24 10.1.0.1",
  ]);
});

test("of a routed pool: the block is a subnet, whose first address the node has", () => {
  expect(spans("routed", { cidr: "10.64.0.0/16", blockLength: 26 }, 2)).toEqual([
    "10.64.0.130-10.64.0.190 10.64.0.128/26 10.64.0.129",
  ]);
  expect(spans("routed", { cidr: "fd64::/48", blockLength: 64 }, 1)).toEqual([
    "fd64:0:0:1::2-fd64::1:ffff:ffff:ffff:ffff fd64:0:0:1::/64 fd64:0:0:1::1",
  ]);
  expect(spans("routed", { cidr: "10.64.0.0/24", blockLength: 32 }, 7)).toEqual([
    "10.64.0.7-10.64.0.7 10.64.0.7/32 undefined",
  ]);
});

test.each<[string, string[], string[]]>([
  ["all", ["10.1.0.0/28"], []],
  ["the beginning", ["10.1.0.0/30"], ["10.1.0.4-10.1.0.8"]],
  ["the end, and more", ["10.1.0.8/29"], ["10.1.0.1-10.1.0.7"]],
  ["what holds one another", ["10.1.0.2/31", "10.1.0.3", "10.1.0.2"], ["10.1.0.1-10.1.0.1", "10.1.0.4-10.1.0.8"]],
  ["the other family", ["fd00::/8"], ["10.1.0.1-10.1.0.8"]],
])("excluded: %s", (_, exclude, left) => {
  expect(spans("flat", { cidr: "10.1.0.0/24", blockSize: 8, exclude }, 0).map((text) => text.split(" ")[0]!)).toEqual(
    left,
  );
});

test("single addresses are in no block, and are served by themselves", () => {
  const ranges = [{ cidr: "10.1.0.0/24", blockSize: 4 }],
    pool = poolFrom("p", { layout: "flat", ranges, singles: ["10.1.0.2"] });
  const single = blockWith(pool, parseAddress("10.1.0.2")!)!;
  const served = servedAddresses(pool, [0, single]);
  expect(servedRangesIn(served)).toEqual(["10.1.0.1-10.1.0.1", "10.1.0.3-10.1.0.4"]);
  expect(served.singles).toEqual({ all: ["10.1.0.2"], served: ["10.1.0.2"] });
});

const flat = (range: object, more: object = {}) => ({ layout: "flat", ranges: [range], ...more });
const V6 = { cidr: "fd00::/63", blockLength: 64 };

test.each<[string, object, string[]]>([
  ["behind 15 blocks of 16, without that of all hosts", flat({ cidr: "10.1.0.0/24", blockSize: 16 }), [
    "10.1.0.241-10.1.0.254 14",
  ]],
  ["behind two blocks of 100", flat({ cidr: "10.1.0.0/24", blockSize: 100 }), ["10.1.0.201-10.1.0.254 54"]],
  [
    "none where the last block is whole",
    flat({ cidr: "10.1.0.0/24", from: "10.1.0.16", to: "10.1.0.31", blockSize: 16 }),
    [],
  ],
  ["what is excluded, the gateway and singles are not wanted in a block", {
    ...flat({ cidr: "10.1.0.0/24", gateway: "10.1.0.254", exclude: ["10.1.0.244/30"], blockSize: 16 }),
    singles: ["10.1.0.241", "10.1.0.253"],
  }, ["10.1.0.242-10.1.0.252 7"]],
  ["none where all of it is excluded", flat({ cidr: "10.1.0.0/24", exclude: ["10.1.0.240/28"], blockSize: 16 }), []],
  ["what the other family has no blocks for", {
    layout: "routed",
    ranges: [{ cidr: "10.9.0.0/22", blockLength: 24 }, V6],
  }, [
    "10.9.2.0-10.9.3.255 512",
  ]],
  ["not of IPv6", flat({ cidr: "fd00::/120", blockSize: 100 }), []],
])("in no block: %s", (_, pool, expected) => {
  expect(inNoBlock(poolFrom("p", pool)).map(({ first, last, count }) => `${first}-${last} ${count}`)).toEqual(
    expected,
  );
});
