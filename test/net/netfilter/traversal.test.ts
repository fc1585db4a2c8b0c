/** What is said of a packet of which not everything is known. That all else is judged as the kernel does, kernel-agrees shows. */
import { describe, expect, test } from "bun:test";
import { known, knownNumber, unknown } from "../../../src/net/netfilter/known-bytes.ts";
import { firstPacket, type PacketFacts } from "../../../src/net/netfilter/packet.ts";
import type {
  Operation,
  RuleChain,
  RuleSet,
  Ruleset,
  SetElement,
  Verdict,
} from "../../../src/net/netfilter/ruleset.ts";
import { certainFate, traverse } from "../../../src/net/netfilter/traversal.ts";

const TCP = 6;
const flow = { family: 4, source: known(Uint8Array.of(10, 9, 0, 2)), protocol: TCP, destinationPort: 80 } as const;
const packet: PacketFacts = {
  ...firstPacket({ ...flow, destination: unknown(4) }, () => undefined),
  input: { name: "br0", index: 3 },
};

const daddr: Operation = { does: "payload", base: "network", offset: 16, length: 4, into: 0 };
const dport: Operation = { does: "payload", base: "transport", offset: 2, length: 2, into: 0 };
const is = (...bytes: number[]): Operation => ({
  does: "compare",
  register: 0,
  how: "==",
  value: Uint8Array.from(bytes),
});
const end = (kind: "accept" | "drop" | "return"): Operation => ({ does: "verdict", verdict: { kind } });
const jump = (chain: string, kind: "jump" | "goto" = "jump"): Operation => ({
  does: "verdict",
  verdict: { kind, chain },
});

function rulesOf(operations: Operation[][]): RuleChain["rules"] {
  return operations.map((list, index) => ({ handle: BigInt(index + 2), operations: list }));
}

function ruleset(
  rules: Operation[][],
  { policy = "accept" as const, others = {}, set }: {
    policy?: "accept" | "drop";
    others?: Record<string, Operation[][]>;
    set?: Partial<RuleSet>;
  } = {},
): Ruleset {
  const table = { family: "inet", table: "t" } as const;
  const base = { hook: "forward", priority: 0, type: "filter", policy } as const;
  return {
    chains: [
      { ...table, name: "base", base, rules: rulesOf(rules) },
      ...Object.entries(others).map(([name, list]) => ({ ...table, name, rules: rulesOf(list) })),
    ],
    setOf: () => set && { isInterval: false, isChanging: false, keyLength: 4, parts: [], elements: [], ...set },
  };
}

const fate = (rules: Ruleset, of = packet) => certainFate(traverse(rules, of, { hook: "forward" }));
const lookup = (into?: "verdict"): Operation => ({ does: "lookup", register: 0, set: "s", isInverted: false, into });
const element = (key: number[], rest: Partial<SetElement> = {}): SetElement => ({
  key: Uint8Array.from(key),
  isEnd: false,
  isTimed: false,
  ...rest,
});
const verdict = (kind: "accept" | "drop"): { verdict: Verdict } => ({ verdict: { kind } });

describe("an address that is not known", () => {
  test.each<[string, ReturnType<typeof fate>, Ruleset]>([
    ["one address is dropped", undefined, ruleset([[daddr, is(10, 9, 0, 3), end("drop")]])],
    [
      "one address is dropped, and so is all else",
      "is dropped",
      ruleset([[daddr, is(10, 9, 0, 3), end("drop")], [end("drop")]]),
    ],
    [
      "all bits are masked out",
      "is dropped",
      ruleset([[
        daddr,
        { does: "mask", from: 0, into: 0, mask: new Uint8Array(4), xor: new Uint8Array(4) },
        is(0, 0, 0, 0),
        end("drop"),
      ]]),
    ],
    ["an empty set", "passes", ruleset([[daddr, lookup(), end("drop")]], { set: {} })],
    [
      "a set with an address",
      undefined,
      ruleset([[daddr, lookup(), end("drop")]], { set: { elements: [element([1, 2, 3, 4])] } }),
    ],
    [
      "a verdict for each address, all alike",
      "is dropped",
      ruleset([[daddr, lookup("verdict")]], {
        policy: "drop",
        set: { elements: [element([1, 2, 3, 4], verdict("drop")), element([1, 2, 3, 5], verdict("drop"))] },
      }),
    ],
    [
      "a verdict for all others, too",
      undefined,
      ruleset([[daddr, lookup("verdict")]], {
        set: {
          elements: [element([1, 2, 3, 4], verdict("drop")), { isEnd: false, isTimed: false, ...verdict("accept") }],
        },
      }),
    ],
    [
      "an interval over all addresses",
      "is dropped",
      ruleset([[daddr, lookup(), end("drop")]], {
        set: { isInterval: true, elements: [element([0, 0, 0, 0])] },
      }),
    ],
  ])("%s: %s", (_, expected, rules) => expect(fate(rules)).toBe(expected!));
});

describe("what is known", () => {
  test.each<[string, ReturnType<typeof fate>, Ruleset]>([
    ["an expression that nobody knows", undefined, ruleset([[{ does: "something", name: "synproxy" }]])],
    ["a limit before the drop", undefined, ruleset([[{ does: "guess", name: "limit" }, end("drop")]])],
    [
      "a limit, and a drop for the rest",
      undefined,
      ruleset([[{ does: "guess", name: "limit" }, end("accept")], [end("drop")]]),
    ],
    [
      "an element that times out",
      undefined,
      ruleset([[dport, lookup(), end("drop")]], {
        set: { keyLength: 2, elements: [element([0, 80], { isTimed: true })] },
      }),
    ],
    [
      "a set that rules change",
      undefined,
      ruleset([[dport, lookup(), end("drop")]], {
        set: { keyLength: 2, isChanging: true, elements: [element([0, 80])] },
      }),
    ],
    ["the port", "is dropped", ruleset([[dport, is(0, 80), end("drop")]])],
    [
      "a return from a base chain is its policy",
      "is dropped",
      ruleset([[end("return")], [end("accept")]], { policy: "drop" }),
    ],
    [
      "a goto does not come back",
      "is dropped",
      ruleset([[jump("a", "goto")], [end("accept")]], {
        policy: "drop",
        others: { a: [[{ does: "nothing", name: "counter" }]] },
      }),
    ],
    ["a jump does", "passes", ruleset([[jump("a")], [end("accept")]], { policy: "drop", others: { a: [] } })],
    ["a chain that is gone meanwhile", undefined, ruleset([[jump("nowhere")]])],
    ["chains that jump in a circle", undefined, ruleset([[jump("a")]], { others: { a: [[jump("a")]] } })],
    [
      "xtables' own, unknown",
      undefined,
      ruleset([[
        { does: "match", name: "u32", revision: 0, info: new DataView(new ArrayBuffer(8)) },
        end("drop"),
      ]]),
    ],
    [
      "a struct that is too short",
      undefined,
      ruleset([[
        { does: "match", name: "multiport", revision: 1, info: new DataView(new ArrayBuffer(2)) },
        end("drop"),
      ]]),
    ],
  ])("%s: %s", (_, expected, rules) => expect(fate(rules)).toBe(expected!));
});

test("what left it open is told, in the order of the packet's way", () => {
  const rules = ruleset([[{ does: "guess", name: "limit" }, end("drop")], [daddr, is(1, 2, 3, 4), end("drop")]]);
  const { doubts, endings } = traverse(rules, packet, { hook: "forward" });
  expect(doubts.map(({ rule, about }) => [rule?.handle, about])).toEqual([[2n, "limit"], [3n, "compare"]]);
  expect(endings.map((ending) => ending.fate)).toEqual(["passes", "is dropped", "is dropped"]);
});

test("where rules make more of a packet than is followed, nothing is said", () => {
  const marks = Array.from({ length: 8 }, (_, bit): Operation[] => [
    { does: "guess", name: "numgen" },
    { does: "meta", key: "mark", into: 0 },
    { does: "mask", from: 0, into: 0, mask: new Uint8Array(4).fill(0xff), xor: Uint8Array.of(1 << bit, 0, 0, 0) },
    { does: "set meta", key: "mark", from: 0 },
  ]);
  expect(fate(ruleset([...marks, [end("drop")]]))).toBeUndefined();
});

describe("the element of a set by which a rule stops a packet", () => {
  const web = element([10, 9, 0, 2]), mail = element([10, 9, 0, 3]);
  const source: Operation = { does: "payload", base: "network", offset: 12, length: 4, into: 0 };
  const found = (rules: Operation[][], of = packet) =>
    traverse(ruleset(rules, { set: { elements: [web, mail] } }), of, { hook: "forward" }).endings
      .filter((ending) => ending.fate === "is dropped").map(({ by }) => by?.element);

  test("is told", () => expect(found([[source, lookup(), end("drop")]])).toEqual([web]));
  test("is not told when there may be another", () => {
    const unknownSource = firstPacket({ ...flow, source: unknown(4), destination: unknown(4) }, () => undefined);
    expect(found([[source, lookup(), end("drop")]], unknownSource)).toEqual([undefined]);
  });
  test("is not told when the packet may be another one by then", () => {
    const renamed: Operation[] = [
      { does: "guess", name: "limit" },
      { does: "put", into: 0, value: mail.key! },
      { does: "set payload", base: "network", offset: 12, length: 4, from: 0 },
    ];
    expect(found([renamed, [source, lookup(), end("drop")]])).toEqual([undefined]);
  });
});

test("destinations are translated once, and only for the first packet of a connection", () => {
  const to = (last: number): Operation[] => [
    { does: "put", into: 0, value: Uint8Array.of(10, 0, 0, last) },
    { does: "nat", changes: "destination", address: 0, isFirm: true },
  ];
  const base = { hook: "prerouting", priority: -100, type: "nat", policy: "accept" } as const;
  const chains = ["a", "b"].map((name, index): RuleChain => ({
    family: "ip",
    table: name,
    name,
    base: { ...base, priority: -100 + index },
    rules: rulesOf([to(index + 1)]),
  }));
  const where = (of: PacketFacts) =>
    traverse({ chains, setOf: () => undefined }, of, { hook: "prerouting" }).endings.map(({ packet }) =>
      [...packet.network.value.subarray(16, 20)].join(".")
    );
  expect(where(packet)).toEqual(["10.0.0.1"]);
  expect(where({ ...packet, state: "established" })).toEqual(["0.0.0.0"]);
});

test("how old the chains of two tables are is not known, so either may be called first", () => {
  const at = (table: string, operations: Operation[]): RuleChain => ({
    family: "ip",
    table,
    name: "base",
    base: { hook: "forward", priority: 0, type: "filter", policy: "accept" },
    rules: rulesOf([operations]),
  });
  const mark: Operation[] = [
    { does: "put", into: 0, value: Uint8Array.of(1, 0, 0, 0) },
    { does: "set meta", key: "mark", from: 0 },
  ];
  const dropped: Operation[] = [{ does: "meta", key: "mark", into: 0 }, is(1, 0, 0, 0), end("drop")];
  const of = (...chains: RuleChain[]) => fate({ chains, setOf: () => undefined });
  expect(of(at("a", mark), at("b", dropped))).toBeUndefined();
  expect(of(at("b", dropped), at("a", mark))).toBeUndefined();
  expect(of(at("a", dropped), at("a", mark))).toBe("is dropped");
  expect(of(at("a", mark), at("a", dropped))).toBe("passes");
  expect(of(...["a", "b", "c", "d"].map((table) => at(table, [end("drop")])))).toBe("is dropped");
  const many = Array.from({ length: 40 }, (_, index) => at(`t${index}`, []));
  expect(of(...many)).toBeUndefined();
});

test("a chain of an older table does not jump to one of nf_tables that has the same name", () => {
  const table = { family: "ip", table: "filter" } as const;
  const base = { hook: "forward", priority: 0, type: "filter", policy: "accept" } as const;
  const chains: RuleChain[] = [
    { ...table, name: "FORWARD", base, rules: rulesOf([[jump("OWN")]]) },
    { ...table, name: "OWN", rules: [] },
    { ...table, name: "FORWARD", base, rules: rulesOf([[jump("OWN")]]), isLegacy: true },
    { ...table, name: "OWN", rules: rulesOf([[end("drop")]]), isLegacy: true },
  ];
  const { endings } = traverse({ chains, setOf: () => undefined }, packet, { hook: "forward" });
  expect(endings.map(({ fate, by }) => [fate, by?.chain.isLegacy])).toEqual([["is dropped", true]]);
});

/** struct nf_nat_ipv4_multi_range_compat with one address and one port. */
test.each([[0, true], [4, false], [16, false]])(
  "a port that is chosen at random is not known: flags %d",
  (flags, isKnown) => {
    const info = Uint8Array.of(1, 0, 0, 0, 3 | flags, 0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1, 0, 80, 0, 80);
    const rules = ruleset([[{ does: "target", name: "SNAT", revision: 0, info: new DataView(info.buffer) }]]);
    const [ending] = traverse(rules, packet, { hook: "forward" }).endings;
    expect([...ending!.packet.transport.mask.subarray(0, 2)]).toEqual(isKnown ? [255, 255] : [0, 0]);
  },
);

/** struct xt_connmark_tginfo2 with the masks 0x0f of the connection's mark, and 0x3c of the packet's. */
test.each<[string, number, number[], Partial<PacketFacts>]>([
  ["set", 0, [0x0e, 0x35], {}],
  ["save", 1, [0x0e, 0x3c], {}],
  ["restore", 2, [0x03, 0x31], {}],
  ["save, without a connection", 1, [0x0e, 0x31], { state: "untracked" }],
  ["save, shifted", 1 << 8 | 1, [], {}],
])("CONNMARK: %s", (_, mode, marks, other) => {
  const of = { ...packet, mark: knownNumber(0x0e), connectionMark: knownNumber(0x31), ...other };
  const info = Uint8Array.of(5, 0, 0, 0, 0x0f, 0, 0, 0, 0x3c, 0, 0, 0, 0, mode >> 8, mode & 255, 0);
  const rules = ruleset([[{ does: "target", name: "CONNMARK", revision: 2, info: new DataView(info.buffer) }]]);
  const { endings } = traverse(rules, of, { hook: "forward" });
  if (marks.length === 0) expect(endings.map(({ fate }) => fate)).toContain("is unknown");
  else expect(endings.map((end) => [end.packet.mark.value[0], end.packet.connectionMark.value[0]])).toEqual([marks]);
});
