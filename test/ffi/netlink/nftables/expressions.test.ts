/** Expressions of rules on the wire, and what a rule of the kernel's is found to do. */
import { expect, test } from "bun:test";
import {
  accept,
  backToCaller,
  counter,
  destinationNat,
  destinationNatTo,
  drop,
  loaded,
  puts,
  sourceNatTo,
} from "../../../../src/ffi/netlink/nftables/action.ts";
import {
  between,
  compares,
  countsIn,
  equals,
  isInRuleSet,
  isKeyOf,
  isNotIn,
  withBits,
} from "../../../../src/ffi/netlink/nftables/compare.ts";
import type { Expression, FoundExpression } from "../../../../src/ffi/netlink/nftables/expression.ts";
import {
  commentMatch,
  destinationPorts,
  matchedComment,
  matchedPorts,
} from "../../../../src/ffi/netlink/nftables/extension.ts";
import {
  destinationAddress,
  establishedOrRelated,
  from,
  invalid,
  loadsDestination,
  loadsSource,
  multicast4,
  multicast6,
  ofFamily,
  sourceAddress,
  to,
} from "../../../../src/ffi/netlink/nftables/packet-match.ts";
import { addRule } from "../../../../src/ffi/netlink/nftables/rule.ts";
import { attributeAt } from "../../../../src/ffi/netlink/attrs.ts";
import { NFTA_OBJREF_SET_NAME } from "../../../../src/ffi/netlink/uapi/nf-tables.ts";
import { parsePrefix } from "../../../../src/net/address.ts";
import { portBytes } from "../../../../src/net/port.ts";
import { attributesBy, bodyOf, bytesBy } from "../fake-kernel.ts";

/** As the kernel would list it. */
function listed({ name, table, values }: Expression): FoundExpression {
  return { name, data: bytesBy((writer) => table.encode(writer, values)) };
}

const attributes = (
  { name, table, values }: Expression,
) => [name, ...attributesBy((writer) => table.encode(writer, values))];

test("verdicts and constants", () => {
  expect(attributes(drop)).toEqual(["immediate", "1: 00000000", "2.2.1: 00000000"]);
  expect(attributes(backToCaller)).toEqual(["immediate", "1: 00000000", "2.2.1: fffffffb"]);
  expect(attributes(loaded(Uint8Array.of(1, 2), 3))).toEqual(["immediate", "1: 00000003", "2.1: 0102"]);
  const one = listed(loaded(Uint8Array.of(1, 2), 3));
  expect(puts(one, Uint8Array.of(1, 2))).toBe(true);
  for (const other of [[1, 3], [1], [1, 2, 3], []]) expect(puts(one, Uint8Array.from(other))).toBe(false);
  expect(puts(listed(accept), Uint8Array.of(1))).toBe(false);
  expect(puts({ ...one, name: "cmp" }, Uint8Array.of(1, 2))).toBe(false);
});

test("translations of addresses and ports", () => {
  const v4 = Uint8Array.of(10, 88, 0, 5), v6 = new Uint8Array(16).fill(1), port = portBytes(8080);
  expect(port).toEqual(Uint8Array.of(0x1f, 0x90));
  expect(attributes(destinationNat(4, { withPort: false }))).toEqual([
    "nat",
    "1: 00000001",
    "2: 00000002",
    "3: 00000001",
  ]);
  expect(destinationNatTo(v4, port).map(attributes)).toEqual([
    ["immediate", "1: 00000001", "2.1: 0a580005"],
    ["immediate", "1: 00000002", "2.1: 1f90"],
    ["nat", "1: 00000001", "2: 00000002", "3: 00000001", "5: 00000002"],
  ]);
  expect(sourceNatTo(v6).map(attributes)).toEqual([
    ["immediate", "1: 00000001", `2.1: ${"01".repeat(16)}`],
    ["nat", "1: 00000000", "2: 0000000a", "3: 00000001"],
  ]);
});

test("comparisons", () => {
  const value = Uint8Array.of(1, 2), one = listed(equals(value));
  expect(between(value, Uint8Array.of(3, 4)).map(attributes)).toEqual([
    ["cmp", "1: 00000001", "2: 00000005", "3.1: 0102"],
    ["cmp", "1: 00000001", "2: 00000003", "3.1: 0304"],
  ]);
  expect(compares(one, value)).toBe(true);
  for (const other of [[1, 3], [1], [1, 2, 3], []]) expect(compares(one, Uint8Array.from(other))).toBe(false);
  expect(compares({ ...one, name: "immediate" }, value)).toBe(false);
  expect(attributes(withBits(0x2000))).toEqual([
    "bitwise",
    "1: 00000001",
    "2: 00000001",
    "3: 00000004",
    "4.1: ffdfffff",
    "5.1: 00200000",
  ]);
});

test("looking up", () => {
  expect(attributes(isNotIn("s"))).toEqual(["lookup", "2: 00000001", "1: 7300", "5: 00000001"]);
  expect(attributes(isKeyOf("s"))).toEqual(["lookup", "2: 00000001", "3: 00000002", "1: 7300"]);
  expect(attributes(isInRuleSet({ name: "s", id: 7 }))).toEqual(["lookup", "2: 00000001", "1: 7300", "4: 00000007"]);
  expect(attributes(isInRuleSet())).toEqual(["lookup", "2: 00000001"]);
});

test("addresses of packets", () => {
  const offset = (one: Expression) => attributes(one)[3];
  expect([sourceAddress(4), destinationAddress(4), sourceAddress(16), destinationAddress(16)].map(offset)).toEqual([
    "3: 0000000c",
    "3: 00000010",
    "3: 00000008",
    "3: 00000018",
  ]);
  for (const size of [4, 16]) {
    const source = listed(sourceAddress(size, 2)), destination = listed(destinationAddress(size));
    expect([loadsSource(source, size), loadsDestination(source, size)]).toEqual([true, false]);
    expect([loadsSource(destination, size), loadsDestination(destination, size)]).toEqual([false, true]);
    expect(loadsSource({ ...source, name: "meta" }, size)).toBe(false);
    expect(loadsSource(source, 20 - size)).toBe(false);
  }
  expect([from, to].map((match) => match(parsePrefix("0.0.0.0/0")!))).toEqual([[], []]);
  expect([from, to].map((match) => match(parsePrefix("128.0.0.0/1")!).length)).toEqual([3, 3]);
  expect([multicast4, multicast6]).toEqual([parsePrefix("224.0.0.0/4")!, parsePrefix("ff00::/8")!]);
  expect(attributes(ofFamily(4)[1]!).at(-1)).toBe("3.1: 02");
  expect(attributes(ofFamily(16)[1]!).at(-1)).toBe("3.1: 0a");
  const state = (mask: string) => [
    ["ct", "2: 00000000", "1: 00000001"],
    ["bitwise", "1: 00000001", "2: 00000001", "3: 00000004", `4.1: ${mask}`, "5.1: 00000000"],
    ["cmp", "1: 00000001", "2: 00000001", "3.1: 00000000"],
  ];
  expect(invalid.map(attributes)).toEqual(state("01000000"));
  expect(establishedOrRelated.map(attributes)).toEqual(state("06000000"));
});

test("the ports of a rule of iptables are read as they were written, up to fifteen", () => {
  const ports = Array.from({ length: 15 }, (_, index) => 256 * index + 9);
  expect(matchedPorts([listed(accept), listed(destinationPorts(ports))])).toEqual(ports);
  expect(() => destinationPorts([...ports, 1])).toThrow("iptables multiport of 16 ports, 15 at most");
  expect(matchedPorts([listed(accept)])).toBeUndefined();
  const { data, name } = listed(destinationPorts([80])), ofSources = data.slice();
  ofSources[ofSources.indexOf(1, 28)]! ^= 3;
  expect(matchedPorts([{ name, data: ofSources }])).toBeUndefined();
});

test("the kernel's objection to a rule names the expression", () => {
  const message = addRule({ table: { family: 2, name: "t" }, name: "c" }, [drop, counter, isNotIn("set")]);
  const bytes = bytesBy((writer) => message.table.encode(writer, message.values));
  const words: Record<string, number> = {};
  for (let at = 0; at < bytes.length; at += 4) {
    const name = attributeAt(message.table, bytes, at)!;
    words[name] = (words[name] ?? 0) + 1;
  }
  // Headers of attributes, names and what is behind them, in words of four bytes.
  expect(words).toEqual({
    table: 2,
    chain: 2,
    expressions: 1,
    "expressions.immediate": 1 + 4 + 7,
    "expressions.counter": 1 + 3 + 7,
    "expressions.lookup": 1 + 3 + 7,
  });
});

test("a comment of iptables has 255 bytes at most, and is read as it was written", () => {
  for (const text of ["", "a", "x".repeat(255)]) expect(matchedComment([listed(commentMatch(text))])).toBe(text);
  expect(() => commentMatch("x".repeat(256))).toThrow("iptables comment of 256 bytes, 255 at most");
  expect(matchedComment([listed(destinationPorts([80])), listed(commentMatch("a"))])).toBe("a");
});

test("the map of counters is read with its NUL, as the kernel lists it, or without", () => {
  const map = (text: string) => ({
    name: "objref",
    data: bytesBy(bodyOf("", { [NFTA_OBJREF_SET_NAME]: Buffer.from(text).toHex() })),
  });
  for (const text of ["map", "map\0"]) expect(countsIn([map(text)])).toBe("map");
});
