/** Whatever a rule is and whatever it is called, its line is one line, and nothing is thrown. */
import { expect, test } from "bun:test";
import { array, assert, constantFrom, nat, oneof, property, record, string, uint8Array } from "fast-check";
import { makerOf } from "../../../src/net/netfilter/owner.ts";
import type { Operation, Rule, RuleChain } from "../../../src/net/netfilter/ruleset.ts";
import { placeText, ruleLine } from "../../../src/net/netfilter/text.ts";

const DISTURBS = /[\p{C}\p{Zl}\p{Zp}]/u;
const register = nat(60), bytes = uint8Array({ maxLength: 20 }), text = string({ unit: "binary", maxLength: 255 });
const does = <D extends Operation["does"]>(name: D) => constantFrom(name);

const operation = oneof(
  record({
    does: does("payload"),
    base: constantFrom("link", "network", "transport", "inner"),
    offset: nat(30),
    length: nat(16),
    into: register,
  }),
  record({
    does: does("meta"),
    key: constantFrom("l4proto", "iifname", "nfproto", "mark", "key 99"),
    into: register,
  }),
  record({ does: does("ct"), key: constantFrom("state", "status", "key 99"), into: register }),
  record({ does: does("compare"), register, how: constantFrom("==", "!=", "<", "<=", ">", ">="), value: bytes }),
  record({ does: does("mask"), from: register, into: register, mask: bytes, xor: bytes }),
  record({ does: does("put"), into: register, value: bytes }),
  record({
    does: does("lookup"),
    register,
    set: text,
    isInverted: constantFrom(true, false),
    into: oneof(register, constantFrom("verdict", undefined)),
  }),
  record({ does: does("verdict"), verdict: record({ kind: constantFrom("jump", "goto"), chain: text }) }),
  record({
    does: constantFrom("match", "target"),
    name: oneof(text, constantFrom("tcp", "udp", "multiport", "conntrack", "addrtype", "icmp", "toString")),
    revision: nat(3),
    info: uint8Array({ maxLength: 200 }).map((bytes) => new DataView(bytes.slice().buffer)),
  }),
  record({ does: does("something"), name: text }),
);

test("whatever it is, it is shown in one line", () => {
  const rules = record({
    operations: array(operation, { maxLength: 12 }),
    comment: text,
    owner: oneof(text, constantFrom(undefined)),
  });
  const place = record({
    family: constantFrom("ip", "ip6", "inet", "bridge"),
    table: oneof(text, constantFrom("filter")),
    name: text,
  });
  assert(
    property(rules, place, nat(100), ({ operations, ...rest }, chain, width) => {
      const rule = { handle: 1n, operations, ...rest } as Rule;
      const where: RuleChain = { ...chain, rules: [rule] } as RuleChain,
        ruleset = { chains: [where], setOf: () => undefined };
      const line = ruleLine(rule, where.family, width + 1);
      expect([...line].length).toBeLessThanOrEqual(width + 1);
      const maker = makerOf({ chain: where, rule }, ruleset, []);
      for (const shown of [line, placeText({ chain: where, rule }), ...Object.values(maker)]) {
        expect(shown).not.toMatch(DISTURBS);
      }
    }),
    { numRuns: 3000 },
  );
});
