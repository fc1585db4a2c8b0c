/** iptables rules are the bytes that iptables-nft sends for the same text (test/golden/nftables). */
import { expect, test } from "bun:test";
import { ruleExpressions } from "../../src/iptables/nft-rule.ts";
import { protocolNumbers } from "../../src/iptables/rule.ts";
import { quoted, wordAfter, wordsOf } from "../../src/iptables/text-rule.ts";
import { type FoundExpression, isSameRule } from "../../src/ffi/netlink/nftables/expression.ts";
import { messageType, writeBody } from "../../src/ffi/netlink/nftables/message.ts";
import { addRule } from "../../src/ffi/netlink/nftables/rule.ts";
import { NLM_F_REQUEST, Writer } from "../../src/ffi/netlink/wire.ts";
import { golden, inRows } from "../support/golden.ts";
import { placeOf, rules } from "./rules.ts";

function messageOf(name: string) {
  const { family, table, chain } = placeOf(name), { protocol } = rules[name]!;
  const place = { table: { family: family === 4 ? 2 : 10, name: table }, name: chain };
  const compat = { protocol: protocol === undefined ? 0 : protocolNumbers[protocol] };
  return addRule(place, ruleExpressions(rules[name]!, family), { compat });
}

for (const name of Object.keys(rules)) {
  test(`${name}: the same bytes`, () => {
    const message = messageOf(name), writer = new Writer();
    writer.start(messageType(message.type), NLM_F_REQUEST | message.flags, 0);
    writeBody(writer, message);
    writer.finish();
    expect(inRows(writer.bytes.slice(0, writer.length))).toEqual(inRows(golden(`nftables/${name}`)));
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
