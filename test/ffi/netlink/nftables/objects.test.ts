/** Objects of nf_tables on the wire, and how the kernel's answers are read. batch.test.ts asks and deletes. */
import { describe, expect, test } from "bun:test";
import {
  EAFNOSUPPORT,
  EBUSY,
  EINVAL,
  ENOENT,
  EOPNOTSUPP,
  EPERM,
  EPROTONOSUPPORT,
} from "../../../../src/ffi/errno.ts";
import { comment } from "../../../../src/ffi/netlink/nftables/comment.ts";
import { hasExtension } from "../../../../src/ffi/netlink/nftables/extension.ts";
import type { NftMessage } from "../../../../src/ffi/netlink/nftables/message.ts";
import { addRule, flushChain, getRule, insertRule, listRules } from "../../../../src/ffi/netlink/nftables/rule.ts";
import {
  addMap,
  createElement,
  createMap,
  createRuleSet,
  createSet,
  getElement,
  ipv4Key,
  ipv6Key,
  ipv6ProtocolAndPortKey,
  type KeyType,
  linkNameKey,
  linkNamesKey,
  listElements,
  listSets,
  protocolAndPortKey,
  protocolKey,
} from "../../../../src/ffi/netlink/nftables/set.ts";
import {
  addChain,
  addTable,
  chainUse,
  delTable,
  newAndDormant,
  tableUse,
} from "../../../../src/ffi/netlink/nftables/table.ts";
import { answering, attributesBy, bodyOf, type FakeKernel, refusing, sentAs, socketTo } from "../fake-kernel.ts";

const HEADER = 4; // struct nfgenmsg
const table = { family: 2, name: "t" }, chain = { table, name: "c" }, set = { table, name: "s" };
const T = "7400", C = "6300", S = "7300";

/** What it says, then its attributes as `sentAs` shows them. */
function shown({ what, type, flags, family, table, values }: NftMessage): string[] {
  const attributes = attributesBy((writer) => table.encode(writer, values));
  return [`${what}: ${type}, flags 0x${flags.toString(16)}, family ${family}`, ...attributes];
}

describe("changes", () => {
  test("of tables are additions unless exclusive, and are named by family", () => {
    expect([addTable(table), addChain(chain)].map(({ flags }) => flags)).toEqual([0x400, 0x400]);
    expect(shown(newAndDormant(addTable(table)))).toEqual([
      "add table ip t: 0, flags 0x600, family 2", // exclusively
      `1: ${T}`,
      "2: 00000001",
    ]);
    expect(delTable({ family: 7, name: "t" }).what).toBe("delete table bridge t");
    expect(delTable({ family: 9, name: "t" }).what).toBe("delete table family 9 t");
  });

  test("of rules name their table, or their chain and what comes with it", () => {
    expect(shown(flushChain({ table, name: "" }))).toEqual(["flush rule ip t: 8, flags 0x0, family 2", `1: ${T}`]);
    expect(shown(insertRule(chain, [], { userdata: Uint8Array.of(1), compat: { protocol: 6 } }))).toEqual([
      "insert rule ip t c: 6, flags 0x400, family 2",
      `1: ${T}`,
      `2: ${C}`,
      "5.1: 00000006",
      "5.2: 00000000",
      "7: 01",
    ]);
    expect(addRule(chain, []).flags).toBe(0xc00); // NLM_F_APPEND
  });

  test("of sets are exclusive or not; an element without a comment has no user data", () => {
    expect(addMap(set, ipv4Key, ipv4Key).flags).toBe(0x400);
    expect(createMap(set, ipv4Key, ipv4Key).flags).toBe(0x600);
    expect(shown(createElement(set, { key: Uint8Array.of(1), comment: "" }))).toEqual([
      "create element ip t s: 12, flags 0x600, family 2",
      `1: ${T}`,
      `2: ${S}`,
      "3.1.1.1: 01",
    ]);
  });

  test("types of keys are nft's: six bits a type, four bytes or a multiple a part", () => {
    const IPV4 = 7, IPV6 = 8, PROTOCOL = 12, SERVICE = 13, LINK = 41;
    const bits = (...types: number[]) => types.reduce((all, type) => all * 64 + type, 0);
    const is = (key: KeyType, number: number, length: number, parts?: number[]) => {
      expect(key).toMatchObject({ number, length });
      expect(key.parts).toEqual(parts);
    };
    is(protocolKey, PROTOCOL, 1);
    is(ipv4Key, IPV4, 4);
    is(ipv6Key, IPV6, 16);
    is(linkNameKey, LINK, 16);
    is(linkNamesKey, bits(LINK, LINK), 32);
    is(protocolAndPortKey, bits(PROTOCOL, SERVICE), 8, [1, 2]);
    is(ipv6ProtocolAndPortKey, bits(IPV6, PROTOCOL, SERVICE), 24, [16, 1, 2]);
  });

  test("a set that nft has to list in the host's order says so", () => {
    expect(shown(createSet(set, linkNameKey)).at(-1)).toBe("13: 000401000000");
    expect(shown(createSet(set, ipv4Key)).at(-1)).toStartWith("10: "); // its number is the last
  });

  test("the set of one rule is named by its number in the transaction", () => {
    const { name, id, messages: [created, filled] } = createRuleSet(table, protocolKey, [
      Uint8Array.of(6),
      Uint8Array.of(17),
    ]);
    const number = id.toString(16).padStart(8, "0");
    expect(name).toBe("__set%d");
    expect(shown(created!)).toEqual([
      "create set ip t __set%d: 9, flags 0x600, family 2",
      `1: ${T}`,
      "2: 5f5f736574256400",
      "3: 00000003", // NFT_SET_ANONYMOUS, NFT_SET_CONSTANT
      "4: 0000000c",
      "5: 00000001",
      `10: ${number}`,
    ]);
    expect(shown(filled!).slice(3)).toEqual([`4: ${number}`, "3.1.1.1: 06", "3.1.1.1: 11"]);
    expect(createRuleSet(table, protocolKey, []).id).toBe(id + 1);
  });
});

describe("questions", () => {
  const ask = <T>(kernel: FakeKernel, question: (socket: ReturnType<typeof socketTo>) => T) => ({
    found: question(socketTo(kernel)),
    sent: sentAs(kernel, HEADER),
  });

  test("a name that is too long for a chain is none, without asking", () => {
    const kernel = answering(0, bodyOf("02000000", { 6: "00000005" }));
    expect(chainUse(socketTo(kernel), { table, name: "x".repeat(256) })).toBeUndefined();
    expect(kernel.sent).toEqual([]);
    expect(chainUse(socketTo(kernel), { table, name: "x".repeat(255) })).toBe(5);
  });

  test("what is not there, or not known to the kernel, is absent; another refusal is a failure", () => {
    for (const errno of [ENOENT, EOPNOTSUPP, EINVAL, EAFNOSUPPORT]) {
      expect(tableUse(socketTo(refusing(errno)), table)).toBeUndefined();
      expect(listSets(socketTo(refusing(errno)), table)).toEqual([]);
    }
    expect(() => tableUse(socketTo(refusing(EPERM)), table)).toThrow("get table ip t: operation not permitted");
    expect(() => listSets(socketTo(refusing(EPERM)), table)).toThrow("list set ip t : operation not permitted");
  });

  test("elements of a set", () => {
    const elements = (hex: string) => bodyOf("02000000", { 3: hex });
    // An element with a key, an end, a value, a comment and a counter, and one with a key alone.
    const full = "0c000180" + "0500010001000000" + "0c000a80" + "0500010002000000" + "0c000280" + "0500010003000000" +
      "09000600" + "0003616200" + "000000" + "06000900" + "6b000000";
    const wide = `${(4 + full.length / 2).toString(16)}000180${full}`,
      small = "10000180" + "0c000180" + "0500010009000000";
    const all = listElements(socketTo(answering(0, elements(wide + small))), set);
    const one = {
      key: Uint8Array.of(1),
      keyEnd: Uint8Array.of(2),
      data: Uint8Array.of(3),
      comment: "ab",
      counter: "k",
    };
    expect(all).toEqual([one, { key: Uint8Array.of(9), comment: "" }]);
    expect(getElement(socketTo(answering(0, elements(wide))), set, Uint8Array.of(1))).toEqual(one);
    expect(getElement(socketTo(refusing(ENOENT)), set, Uint8Array.of(1))).toBeUndefined();
    expect(listElements(socketTo(answering(0, bodyOf("02000000"))), set)).toEqual([]);
  });

  test("rules of a chain, those that are wanted by their user data", () => {
    const rule = (handle: string, more: Record<number, string>) =>
      bodyOf("02000000", { 1: T, 2: C, 3: `00000000000000${handle}`, ...more });
    const expressions = "18000180" + "0b000100" + "6163636570740000" + "08000280" + "04000100";
    const rules = [
      rule("07", { 4: expressions, 7: comment("ab").toHex() }),
      rule("08", { 7: comment("cd").toHex() }),
      rule("09", {}),
    ];
    const found = listRules(socketTo(answering(0, ...rules)), chain);
    expect(found.map(({ chain, handle, comment }) => [chain, handle, comment])).toEqual([
      ["c", 7n, "ab"],
      ["c", 8n, "cd"],
      ["c", 9n, ""],
    ]);
    expect(found[0]!.expressions).toEqual([{ name: "accept", data: Uint8Array.fromHex("04000100") }]);
    expect(found[1]!.expressions).toEqual([]);
    // Its expressions take more than 255 bytes, and its user data is the last.
    const long = rule("10", { 4: "08000280" + "04000100" + "05000100610000".padEnd(2 * 300, "0"), 7: "ab" });
    let ofLong: Uint8Array | undefined;
    listRules(socketTo(answering(0, long)), chain, (userdata) => (ofLong = userdata, false));
    expect(ofLong!.toHex()).toBe("ab");
    const seen: (string | undefined)[] = [];
    const wanted = listRules(socketTo(answering(0, ...rules)), chain, (userdata) => {
      seen.push(userdata?.toHex());
      return userdata?.[2] === 0x63;
    });
    expect(wanted.map(({ handle }) => handle)).toEqual([8n]);
    expect(seen.slice(-3)).toEqual([comment("ab").toHex(), comment("cd").toHex(), undefined]);
    expect(getRule(socketTo(answering(0, rules[0]!)), chain, 7n)!.comment).toBe("ab");
    expect(getRule(socketTo(refusing(ENOENT)), chain, 7n)).toBeUndefined();
  });

  test("whether nf_tables can use an extension", () => {
    const comment = { kind: "match", name: "c", revision: 1 } as const;
    expect(ask(answering(0), (socket) => hasExtension(socket, comment))).toEqual({
      found: true,
      sent: ["type 2816, flags 0x5", "02000000", `1: ${C}`, "2: 00000001", "3: 00000000"],
    });
    expect(ask(answering(0), (socket) => hasExtension(socket, { ...comment, kind: "target" })).sent.at(-1)).toBe(
      "3: 00000001",
    );
    for (const errno of [ENOENT, EPROTONOSUPPORT]) {
      expect(hasExtension(socketTo(refusing(errno)), comment)).toBe(false);
    }
    expect(hasExtension(socketTo(refusing(EINVAL)), comment)).toBeUndefined();
    expect(() => hasExtension(socketTo(refusing(EBUSY)), comment)).toThrow("get match c: device or resource busy");
  });
});
