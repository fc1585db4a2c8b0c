/**
 * iptables rules as the bytes that iptables-nft sends for the same text (test/golden/nftables), and their words.
 * older-tables.test.ts has them in the older tables.
 */
import { expect, test } from "bun:test";
import { ruleExpressions } from "../../../src/interop/iptables/nft-rule.ts";
import { protocolNumbers } from "../../../src/interop/iptables/rule.ts";
import { quoted, ruleText, wordAfter, wordsOf } from "../../../src/interop/iptables/text-rule.ts";
import { type FoundExpression, isSameRule } from "../../../src/ffi/netlink/nftables/expression.ts";
import { messageType, writeBody } from "../../../src/ffi/netlink/nftables/message.ts";
import { addRule } from "../../../src/ffi/netlink/nftables/rule.ts";
import { NLM_F_REQUEST } from "../../../src/ffi/netlink/wire.ts";
import { parseAddress, parsePrefix } from "../../../src/net/address.ts";
import { message } from "../../ffi/netlink/fake-kernel.ts";
import { golden, inRows } from "../../support/golden.ts";
import { placeOf, rules } from "./rules.ts";

function messageOf(name: string) {
  const { family, table, chain } = placeOf(name), { protocol } = rules[name]!;
  const place = { table: { family: family === 4 ? 2 : 10, name: table }, name: chain };
  const compat = { protocol: protocol === undefined ? 0 : protocolNumbers[protocol] };
  return addRule(place, ruleExpressions(rules[name]!, family), { compat });
}

for (const name of Object.keys(rules)) {
  test(`${name}: the same bytes`, () => {
    const rule = messageOf(name);
    const ours = message(messageType(rule.type), 0, NLM_F_REQUEST | rule.flags, (writer) => writeBody(writer, rule));
    expect(inRows(ours)).toEqual(inRows(golden(`nftables/${name}`)));
  });
}

test("a rule is recognised as the same, and as none of the others", () => {
  const found = Object.keys(rules).map((name) => {
    const values = messageOf(name).table.decode(golden(`nftables/${name}`).subarray(20));
    return { name, expressions: (values as { expressions: FoundExpression[] }).expressions };
  });
  for (const [name, rule] of Object.entries(rules)) {
    const { family } = placeOf(name), wanted = ruleExpressions(rule, family);
    expect(found.filter(({ expressions }) => isSameRule(wanted, expressions)).map((one) => one.name)).toEqual([name]);
  }
});

test("texts are quoted as iptables does it, and read back; what would end the line is refused", () => {
  expect(quoted("plain_text-1")).toBe("plain_text-1");
  for (const text of ["two words", 'a "quoted" word', "it's", "back\\slash", "", "-j", "a.b", "ü"]) {
    expect(wordsOf(`-m comment --comment ${quoted(text)} -j CHAIN`)[3]).toBe(text);
  }
  for (const text of ["two\nlines", "\0", "\t"]) expect(() => quoted(text)).toThrow("control characters");
});

test("the chain a line leads to is not mistaken for a word of its comment", () => {
  const line = (text: string) => wordsOf(`-m comment --comment ${quoted(text)} -j CHAIN`);
  for (const text of ["-j", "-j THERE", "a -j"]) expect(wordAfter(line(text), "-j", "-g")).toBe("CHAIN");
});

test("as text: what the rule matches in the order of iptables, then what happens", () => {
  const prefix = (text: string) => ({ prefix: parsePrefix(text)! });
  expect(ruleText({
    source: { ...prefix("10.1.2.3/8"), not: true },
    destination: prefix("fd00::1/128"),
    inLink: { name: "eth+", not: true },
    outLink: { name: "br0" },
    protocol: "udp",
    comment: "two words",
    states: ["ESTABLISHED", "INVALID", "NEW", "RELATED"],
    toLocal: true,
    destinationPorts: [1, 2],
    destinationPort: 53,
    mark: { value: 0xffffffff | 0, mask: 0x10, not: true },
    target: { setMark: { value: 0x80000000 | 0, mask: 1 } },
  })).toBe(
    '! -s 10.0.0.0/8 -d fd00::1/128 ! -i eth+ -o br0 -p udp -m comment --comment "two words" ' +
      "-m conntrack --ctstate INVALID,NEW,RELATED,ESTABLISHED -m addrtype --dst-type LOCAL -m multiport --dports 1,2 " +
      "-m udp --dport 53 -m mark ! --mark 0xffffffff/0x10 -j MARK --set-xmark 0x80000000/0x1",
  );
  expect(ruleText({ source: prefix("0.0.0.0/0"), target: { jump: "CHAIN" } })).toBe("-j CHAIN");
  expect(
    ruleText({ mark: { value: 1, mask: -1 }, target: { dnat: { address: parseAddress("fd00::1")!, port: 80 } } }),
  )
    .toBe("-m mark --mark 0x1 -j DNAT --to-destination [fd00::1]:80");
});

test("a link's name that iptables cannot take is refused", () => {
  for (const name of ["two words", "a\nb", 'a"b', "a'b", "a\\b", "a\tb", "\x7f"]) {
    expect(() => ruleText({ inLink: { name }, target: "DROP" })).toThrow("iptables cannot take");
  }
});

test("of several options the first counts, and none is no word", () => {
  const words = wordsOf("-s 10.0.0.1/32 -g FIRST -j SECOND");
  expect([wordAfter(words, "-j", "-g"), wordAfter(words, "-s"), wordAfter(words, "-d")])
    .toEqual(["FIRST", "10.0.0.1/32", undefined]);
});

test("every link, and links by the beginning of their name", () => {
  const count = (name: string) => ruleExpressions({ inLink: { name }, target: "DROP" }, 4).length;
  expect(count("eth+") - count("+")).toBe(1);
});
