/** What is said of a packet of which not everything is known. That all else is judged as the kernel does, kernel-agrees shows. */
import { describe, expect, test } from "bun:test";
import { known, unknown } from "../../../src/net/netfilter/known-bytes.ts";
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
        { does: "match", name: "u32", revision: 0, info: new Uint8Array(8) },
        end("drop"),
      ]]),
    ],
    [
      "a struct that is too short",
      undefined,
      ruleset([[
        { does: "match", name: "multiport", revision: 1, info: new Uint8Array(2) },
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
