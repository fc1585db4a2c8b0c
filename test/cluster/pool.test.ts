/** How a pool is cut into blocks, and what is no pool. */
import { describe, expect, test } from "bun:test";
import { poolFrom } from "../../src/cluster/pool-decoding.ts";
import { blockWith, type ClusterPool, countBlocks, piecesOf } from "../../src/cluster/pool.ts";
import { formatAddress, formatPrefix, parseAddress } from "../../src/net/address.ts";

const flat = (range: object, more: object = {}) => poolFrom("p", { layout: "flat", ranges: [range], ...more });
const shown = (pool: ClusterPool, index: number) =>
  piecesOf(pool, index).map((
    { first, last, subnet, gateway },
  ) => [formatAddress(first), formatAddress(last), formatPrefix(subnet), gateway && formatAddress(gateway)]);
const indexOf = (pool: ClusterPool, text: string) => blockWith(pool, parseAddress(text)!);

test("a flat pool: blocks are addresses of one subnet, without its first and last", () => {
  const pool = flat({ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 });
  expect(countBlocks(pool)).toBe(15);
  expect(shown(pool, 0)).toEqual([["10.1.0.1", "10.1.0.16", "10.1.0.0/24", "10.1.0.1"]]);
  expect(shown(pool, 14)).toEqual([["10.1.0.225", "10.1.0.240", "10.1.0.0/24", "10.1.0.1"]]);
  expect(
    ["10.1.0.0", "10.1.0.16", "10.1.0.17", "10.1.0.240", "10.1.0.241", "fd00::1"].map((each) => indexOf(pool, each)),
  )
    .toEqual([undefined, 0, 1, 14, undefined, undefined]);
});

test("blocks of one address, as many as are between from and to", () => {
  const pool = flat({ cidr: "10.1.0.0/24", from: "10.1.0.100", to: "10.1.0.109", blockSize: 1 });
  expect(countBlocks(pool)).toBe(10);
  expect(shown(pool, 9)).toEqual([["10.1.0.109", "10.1.0.109", "10.1.0.0/24", undefined]]);
});

test("a routed pool: each block is a subnet, and a key has both families", () => {
  const pool = poolFrom("p", {
    layout: "routed",
    ranges: [{ cidr: "10.64.0.0/16", blockLength: 26 }, { cidr: "fd64::/48", blockLength: 64 }],
  });
  expect(countBlocks(pool)).toBe(1024);
  expect(shown(pool, 3)).toEqual([
    ["10.64.0.192", "10.64.0.255", "10.64.0.192/26", undefined],
    ["fd64:0:0:3::", "fd64::3:ffff:ffff:ffff:ffff", "fd64:0:0:3::/64", undefined],
  ]);
  expect([indexOf(pool, "10.64.0.200"), indexOf(pool, "fd64:0:0:3::9"), indexOf(pool, "fd64:0:0:ffff::")]).toEqual([
    3,
    3,
    undefined,
  ]);
});

describe("what is no pool is refused by its key and value", () => {
  const range = { cidr: "10.1.0.0/24", blockSize: 16 };
  test.each<[string, unknown, string]>([
    ["no object", "x", '"pool": "x" is no object'],
    ["without a layout", { ranges: [range] }, '"layout" is missing'],
    ["another layout", { layout: "mesh", ranges: [range] }, '"layout": "mesh" is none of flat, routed'],
    ["without ranges", { layout: "flat" }, '"ranges" is missing'],
    ["a misspelt key", { layout: "flat", range: [] }, '"range": is not known'],
    [
      "a misspelt key of a range",
      { layout: "flat", ranges: [{ ...range, gatway: "x" }] },
      '"ranges[0].gatway": is not known',
    ],
    [
      "bits behind the prefix",
      { layout: "flat", ranges: [{ ...range, cidr: "10.1.0.1/24" }] },
      '"ranges[0].cidr": "10.1.0.1/24" has',
    ],
    [
      "no subnet",
      { layout: "flat", ranges: [{ ...range, cidr: "10.1.0.0" }] },
      '"ranges[0].cidr": "10.1.0.0" is no subnet',
    ],
    [
      "a gateway outside",
      { layout: "flat", ranges: [{ ...range, gateway: "10.2.0.1" }] },
      '"10.2.0.1" is not in 10.1.0.0/24',
    ],
    [
      "to before from",
      { layout: "flat", ranges: [{ ...range, from: "10.1.0.9", to: "10.1.0.8" }] },
      "10.1.0.8 is before 10.1.0.9",
    ],
    ["no size", { layout: "flat", ranges: [{ cidr: "10.1.0.0/24" }] }, '"ranges[0].blockSize" is missing'],
    [
      "half an address",
      { layout: "flat", ranges: [{ ...range, blockSize: 1.5 }] },
      '"ranges[0].blockSize": 1.5 is no count',
    ],
    ["smaller than a block", { layout: "flat", ranges: [{ ...range, blockSize: 255 }] }, "smaller than one block"],
    [
      "the other layout's size",
      { layout: "routed", ranges: [range] },
      '"ranges[0].blockSize": a routed pool has blockLength',
    ],
    [
      "a length that is the range's",
      { layout: "routed", ranges: [{ cidr: "10.1.0.0/24", blockLength: 24 }] },
      "from 25 to 32",
    ],
    ["a gateway of a routed pool", {
      layout: "routed",
      ranges: [{ cidr: "10.1.0.0/24", blockLength: 26, gateway: "10.1.0.1" }],
    }, "a subnet of its own"],
    ["two ranges of one family", { layout: "flat", ranges: [range, range] }, "one for each family at most"],
    [
      "an exclusion that is none",
      { layout: "flat", ranges: [{ ...range, exclude: [5] }] },
      '"ranges[0].exclude[0]": 5 is neither',
    ],
  ])("%s", (_, value, says) => expect(() => poolFrom("p", value)).toThrow(says));

  test.each(["", "P", "a/b", "-a", "a".repeat(64)])("the name %p", (name) => {
    expect(() => poolFrom(name, { layout: "flat", ranges: [range] })).toThrow("is no name of a pool");
  });
});

describe("single addresses", () => {
  const range = { cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 };
  const pool = flat(range, { singles: ["10.1.0.20", "10.1.0.250"] });

  test("each is a block of its own, whose number does not depend on the others", () => {
    const [one, other] = ["10.1.0.20", "10.1.0.250"].map((address) => indexOf(pool, address)!);
    expect([one, other]).toEqual([(1 << 20) + 20, (1 << 20) + 250]);
    expect(shown(pool, other!)).toEqual([["10.1.0.250", "10.1.0.250", "10.1.0.0/24", "10.1.0.1"]]);
    expect(indexOf(flat(range, { singles: ["10.1.0.250"] }), "10.1.0.250")).toBe(other);
    expect(shown(flat(range), other!)).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ["no address", "10.1.0", "is no address"],
    ["an address elsewhere", "10.2.0.1", "is in none of the subnets"],
    ["a number", 7, "is no address"],
  ])("%s is refused", (_, single, reason) => expect(() => flat(range, { singles: [single] })).toThrow(reason));
});
