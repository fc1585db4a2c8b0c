/** The index file's layout: which block an address is in, and every damaged header is refused. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  addressAt,
  blockCount,
  blockName,
  blockPrefix,
  blockPrefixOf,
  blockSizeBytes,
  emptyBlock,
  indexIn,
  judgeHeader,
  keepsLeases,
  setKeepsLeases,
  viewBlock,
} from "../../src/ipam/layout.ts";
import { contains, formatAddress, networkOf, parseAddress, parsePrefix, type Prefix } from "../../src/net/address.ts";

const prefix = (text: string) => parsePrefix(text)!;
const address = (text: string) => parseAddress(text)!;
const bootId = new Uint8Array(16).fill(7);

const subnets = fc.oneof(
  fc.tuple(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.integer({ min: 0, max: 30 })),
  fc.tuple(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.integer({ min: 0, max: 126 })),
).map(([bytes, bits]): Prefix => ({ bytes: networkOf({ bytes, bits }), bits }));

describe("blockPrefix()", () => {
  const cases: [string, string, string][] = [
    ["10.1.0.0/24", "10.1.0.77", "10.1.0.0-24"],
    ["10.1.0.0/16", "10.1.200.7", "10.1.0.0-16"],
    ["10.0.0.0/15", "10.1.200.7", "10.1.192.0-20"],
    ["10.0.0.0/12", "10.1.200.7", "10.1.192.0-20"],
    ["fd00::/112", "fd00::7", "fd00::-112"],
    ["fd00::/64", "fd00::dead:beef", "fd00::dead:b000-116"],
  ];
  test.each(cases)("of %s for %s is %s", (subnet, of, name) => {
    expect(blockName(blockPrefix(prefix(subnet), address(of)))).toBe(name);
  });

  test("contains the address, lies in the subnet, and is the same for every address it contains", () => {
    fc.assert(fc.property(subnets, fc.uint8Array({ minLength: 16, maxLength: 16 }), (subnet, noise) => {
      const of = subnet.bytes.map((byte, at) => byte | (noise[at]! & ~networkMask(subnet, at)));
      const block = blockPrefix(subnet, of);
      expect(contains(block, of)).toBe(true);
      expect(contains(subnet, block.bytes)).toBe(true);
      expect(blockCount(block)).toBeLessThanOrEqual(65536);
      expect(blockName(blockPrefix(subnet, block.bytes))).toBe(blockName(block));
      expect(blockPrefixOf(blockName(block))).toEqual(block);
      const index = indexIn(block, of);
      expect(index).toBeLessThan(blockCount(block));
      expect(formatAddress(addressAt(block, index))).toBe(formatAddress(of));
    }));
  });
});

function networkMask({ bytes, bits }: Prefix, at: number): number {
  return networkOf({ bytes: bytes.map(() => 0xff), bits })[at]!;
}

test.each([
  "locks",
  "10.1.0.0-24.bad",
  "10.1.0.0-24.new",
  "10.1.0.7-24",
  "10.0.0.0-8",
  "10.0.0.0-15",
  "10.1.0.0",
  "-",
  "x-24",
])(
  "blockPrefixOf() sees that %p is not a block",
  (name) => expect(blockPrefixOf(name)).toBeUndefined(),
);

describe("judgeHeader()", () => {
  const of = prefix("10.1.0.0/24");
  const fresh = () => emptyBlock(of, bootId);

  test("knows a block of this boot, whether it keeps leases or not", () => {
    const block = fresh();
    expect([judgeHeader(block, bootId), keepsLeases(block)]).toEqual(["current", false]);
    setKeepsLeases(block, true);
    expect([judgeHeader(block, bootId), keepsLeases(block)]).toEqual(["current", true]);
    setKeepsLeases(block, false);
    expect([judgeHeader(block, bootId), keepsLeases(block)]).toEqual(["current", false]);
  });

  test("knows a block of an earlier boot", () => {
    expect(judgeHeader(fresh(), new Uint8Array(16))).toBe("earlier boot");
  });

  test("refuses every header with one bit flipped", () => {
    const KEEP_AT = 24;
    for (let bit = 0; bit < 64 * 8; bit++) {
      const block = fresh();
      new Uint8Array(block.buffer)[bit >> 3]! ^= 1 << (bit & 7);
      const at = bit >> 3;
      const expected = at >= 48 ? "earlier boot" : at >= KEEP_AT && at < KEEP_AT + 4 ? "current" : "damaged";
      expect(judgeHeader(block, bootId)).toBe(expected);
    }
  });

  test("refuses the header of another block, of zeros, and of another layout", () => {
    const others = [emptyBlock(prefix("10.2.0.0/24"), bootId).buffer, new ArrayBuffer(blockSizeBytes(of))];
    for (const buffer of others) expect(judgeHeader(viewBlock(of, buffer), bootId)).toBe("damaged");
  });
});

test.each([
  ["10.1.0.0/24", "50424c580100000000010000400000004004000004000000", "0a010000"],
  ["fd00::1000/116", "50424c5801000000001000004000000040400000060000000", "fd00000000000000000000000000" + "1000"],
])("the header of %s is the one that other releases expect", (of, words, first) => {
  const header = new Uint8Array(emptyBlock(prefix(of), bootId).buffer, 0, 64).toHex();
  expect(header).toBe((words.padEnd(64, "0") + first).padEnd(96, "0") + "07".repeat(16));
});

test("slots and times lie behind the header and do not touch", () => {
  const block = emptyBlock(prefix("10.1.0.0/24"), bootId);
  block.slots.fill(-1);
  block.times.fill(-2);
  expect(judgeHeader(block, bootId)).toBe("current");
  expect(block.slots.every((slot) => slot === -1)).toBe(true);
  expect(block.buffer.byteLength).toBe(64 + 8 * 256);
});
