/**
 * iptables rules in both forms: as the bytes that iptables-nft sends for the same text (test/golden/nftables), and as
 * the line that iptables-save prints for the older tables.
 */
import { expect, test } from "bun:test";
import { ruleExpressions } from "../../src/iptables/nft-rule.ts";
import { type Family, type IptablesRule, protocolNumbers } from "../../src/iptables/rule.ts";
import { quoted, ruleText, wordAfter, wordsOf } from "../../src/iptables/text-rule.ts";
import { multicast4, multicast6 } from "../../src/ffi/netlink/nftables/packet-match.ts";
import { type FoundExpression, isSameRule } from "../../src/ffi/netlink/nftables/expression.ts";
import { messageType, writeBody } from "../../src/ffi/netlink/nftables/message.ts";
import { addRule } from "../../src/ffi/netlink/nftables/rule.ts";
import { NLM_F_REQUEST, Writer } from "../../src/ffi/netlink/wire.ts";
import { parseAddress, parsePrefix } from "../../src/net/address.ts";
import { commandOf, golden, inRows } from "../support/golden.ts";
import { openMachine } from "../support/machine.ts";

const comment = 'name: "mynet" id: "ctr-0001"';
const net = (text: string) => ({ prefix: parsePrefix(text)! });
const dnat = (address: string, port: number) => ({ dnat: { address: parseAddress(address)!, port } });
const CHAIN = "CNI-e4c76feec97a77ba32cd962b", toChain = { jump: CHAIN }, toDnat = { jump: "CNI-HOSTPORT-DNAT" };
const states = ["ESTABLISHED", "RELATED"] as const;
const mark = { value: 0x2000, mask: 0x2000 };

/** By the name of the golden file. */
const rules: Record<string, IptablesRule> = {
  "iptables-accept": { destination: net("10.88.0.5/16"), comment, target: "ACCEPT" },
  "iptables-accept-21": { destination: net("10.88.13.5/21"), comment, target: "ACCEPT" },
  "iptables-accept-0": { destination: net("10.88.13.5/0"), comment, target: "ACCEPT" },
  "iptables-masquerade": { destination: { prefix: multicast4, not: true }, comment, target: "MASQUERADE" },
  "iptables-jump": { source: net("10.88.0.5/32"), comment, target: toChain },
  "ip6tables-accept": { destination: net("fd00:10:88::5/64"), comment, target: "ACCEPT" },
  "ip6tables-masquerade": { destination: { prefix: multicast6, not: true }, comment, target: "MASQUERADE" },
  "ip6tables-jump": { source: net("fd00:10:88::5/128"), comment, target: toChain },
  "iptables-state": { destination: net("10.88.0.5/32"), states, target: "ACCEPT" },
  "ip6tables-state": { destination: net("fd00::5/128"), states, target: "ACCEPT" },
  "iptables-source-12": { source: { ...net("172.16.0.0/12"), not: true }, target: "RETURN" },
  "iptables-links": {
    inLink: { name: "br0" },
    outLink: { name: "br0", not: true },
    comment: "hello",
    target: "DROP",
  },
  "iptables-links-plus": { inLink: { name: "cni+", not: true }, outLink: { name: "eth0" }, target: "DROP" },
  "ip6tables-links": {
    source: net("fd00::/61"),
    inLink: { name: "br0" },
    outLink: { name: "br0", not: true },
    target: "DROP",
  },
  "iptables-local": { toLocal: true, target: toDnat },
  "iptables-ports": { protocol: "tcp", comment, destinationPorts: [80, 443, 8080], target: toDnat },
  "ip6tables-ports": { protocol: "udp", comment, destinationPorts: [53], target: toDnat },
  "iptables-dnat": {
    protocol: "tcp",
    destinationPort: 8080,
    destination: net("192.0.2.1/32"),
    target: dnat("10.88.0.5", 80),
  },
  "ip6tables-dnat": { protocol: "udp", destinationPort: 53, target: dnat("fd00:10:88::5", 5353) },
  "iptables-dnat-sctp": {
    protocol: "sctp",
    destinationPort: 9,
    source: net("127.0.0.1/32"),
    target: dnat("10.88.0.5", 9),
  },
  "iptables-set-mark": { comment, target: { setMark: mark } },
  "ip6tables-mark": { mark, target: "MASQUERADE" },
  "iptables-mark-whole": { mark: { value: 1, mask: 0xffffffff }, target: "RETURN" },
};

/** Where the command appends to: `iptables -t nat -A POSTROUTING …`. */
function placeOf(name: string): { family: Family; table: string; chain: string; command: string } {
  const command = commandOf(`nftables/${name}`);
  const [, tool, table, chain] = /^(ip6?tables) -t (\w+) -A (\S+) /.exec(command)!;
  return { family: tool === "iptables" ? 4 : 6, table: table!, chain: chain!, command };
}

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

test("as text: the line that the older tables' iptables-save prints, and iptables-restore reads", async () => {
  await using machine = await openMachine();
  const places = Object.keys(rules).map((name) => ({ name, ...placeOf(name) }));
  for (const family of [4, 6] as const) {
    const tool = family === 4 ? "iptables-legacy" : "ip6tables-legacy";
    const ours = places.filter((place) => place.family === family);
    for (const table of ["nat", "filter"]) {
      const lines = ours.filter((place) => place.table === table)
        .map(({ name, chain }) => `-A ${chain} ${ruleText(rules[name]!)}`);
      const commands = ours.filter((place) => place.table === table)
        .map(({ command }) => command.replace(/^ip6?tables/, tool));
      const chains = [CHAIN, toDnat.jump, "CNI-FORWARD"];
      await machine.sh([...chains.map((chain) => `${tool} -t ${table} -N ${chain}`), ...commands].join("\n"));
      const saved = async () =>
        (await machine.sh(`${tool}-save -t ${table}`)).split("\n").filter((l) => /^-A/.test(l));
      const theirs = await saved();
      expect(lines.toSorted()).toEqual(theirs.toSorted());
      await machine.sh(`${tool} -t ${table} -F`);
      const input = [`*${table}`, ...theirs, "COMMIT", ""].join("\n");
      await machine.sh(`${tool}-restore --noflush`, { stdin: input });
      expect(await saved()).toEqual(theirs);
    }
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
