/** Policy rules on the wire. */
import { expect, test } from "bun:test";
import { EEXIST, ENOENT } from "../../../../src/ffi/errno.ts";
import {
  addRoutingRule,
  addRuleImage,
  delRoutingRule,
  listRoutingRules,
  type RoutingRule,
  sourceRule,
} from "../../../../src/ffi/netlink/route/rule.ts";
import { RTM_NEWRULE } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { formatPrefix, parsePrefix } from "../../../../src/net/address.ts";
import { answering, bodyOf, refusing, sentAs, sentBy, socketTo } from "../fake-kernel.ts";

const HEADER = 12; // struct fib_rule_hdr
const bySource = sourceRule(parsePrefix("10.1.0.2/32")!, 1000);
const full: RoutingRule = {
  family: 10,
  source: parsePrefix("fd00::/8")!,
  destination: parsePrefix("fc00::/7")!,
  table: 7,
  priority: 500,
  inputLink: "eth0",
};
const ofFull = {
  1: `fc${"00".repeat(15)}`,
  2: `fd${"00".repeat(15)}`,
  3: "6574683000",
  6: "f4010000",
  15: "07000000",
};

const sent = (work: Parameters<typeof sentBy>[0]) => sentBy(work, HEADER);

test("a rule looks up its table, and has what is said of it", () => {
  expect(sent((socket) => addRoutingRule(socket, bySource))).toEqual([
    "type 32, flags 0x605", // RTM_NEWRULE: a request with an ACK, create, exclusively
    "02002000 00000001 00000000", // FR_ACT_TO_TBL
    "2: 0a010002",
    "15: e8030000",
  ]);
  expect(sent((socket) => addRoutingRule(socket, full)).slice(1).sort()).toEqual(
    ["0a070800 00000001 00000000", ...Object.entries(ofFull).map(([type, value]) => `${type}: ${value}`)].sort(),
  );
  const toAll: RoutingRule = { family: 2, destination: parsePrefix("10.0.0.0/8")!, table: 7 };
  expect(sent((socket) => addRoutingRule(socket, toAll))[1]).toBe("02080000 00000001 00000000");
});

test("a rule that is not there any more is no failure; one that is there already is", () => {
  const [listed] = listRoutingRules(
    socketTo(answering(RTM_NEWRULE, bodyOf("02002000 07000001 00000000", { 15: "07000000" }))),
    2,
  );
  expect(delRoutingRule(socketTo(answering(0)), listed!)).toBe("deleted");
  expect(delRoutingRule(socketTo(refusing(ENOENT)), listed!)).toBe("absent");
  expect(() => delRoutingRule(socketTo(refusing(EEXIST)), listed!)).toThrow("RTM_DELRULE table 7: file exists");
  expect(() => addRoutingRule(socketTo(refusing(EEXIST)), full)).toThrow("RTM_NEWRULE table 7: file exists");
});

test("rules are listed with what they match", () => {
  const kernel = answering(
    RTM_NEWRULE,
    bodyOf("0a070800 07000001 00000000", ofFull),
    // The first one of the kernel's own: of priority 0, to the table local, which the header can name.
    bodyOf("02000000 ff000001 00000000"),
  );
  const text = (prefix: RoutingRule["source"]) => prefix && formatPrefix(prefix);
  expect(
    listRoutingRules(socketTo(kernel), 10).map(({ bytes: _, source, destination, ...more }) => ({
      from: text(source),
      to: text(destination),
      ...more,
    })),
  ).toEqual([
    {
      from: "fd00::/8",
      to: "fc00::/7",
      family: 10,
      table: 7,
      priority: 500,
      inputLink: "eth0",
      bySourceAlone: false,
    },
    {
      from: undefined,
      to: undefined,
      family: 2,
      table: 255,
      priority: 0,
      inputLink: undefined,
      bySourceAlone: false,
    },
  ]);
  expect(sentAs(kernel, HEADER)).toEqual(["type 34, flags 0x301", "0a000000 00000000 00000000"]);
  expect(listRoutingRules(socketTo(answering(RTM_NEWRULE + 1, bodyOf("02000000 ff000001 00000000"))), 0)).toEqual([]);
});

test("a rule is added again, and deleted, with all that was listed but the state of links", () => {
  const more = { 2: "0a010002", 3: "6574683000", 10: "05000000", 15: "07000000" };
  const list = (header: string) => listRoutingRules(socketTo(answering(RTM_NEWRULE, bodyOf(header, more))), 2)[0]!;
  // FIB_RULE_INVERT, and beside it FIB_RULE_PERMANENT and FIB_RULE_IIF_DETACHED
  const there = list("02002000 07000001 0b000000"), here = list("02002000 07000001 02000000");
  expect(there.bytes).toEqual(here.bytes);
  const lines = ["02002000 07000001 02000000", "2: 0a010002", "3: 6574683000", "10: 05000000", "15: 07000000"];
  expect(sent((socket) => addRuleImage(socket, there.bytes))).toEqual(["type 32, flags 0x605", ...lines]);
  expect(sent((socket) => delRoutingRule(socket, there))).toEqual(["type 33, flags 0x5", ...lines]);
});

test("a rule is one by its source alone when it asks nothing else, and only looks up a table", () => {
  // FRA_SRC, FRA_PRIORITY, FRA_TABLE, FRA_PROTOCOL, FRA_SUPPRESS_PREFIXLEN
  const usual = { 2: "0a010002", 6: "f4010000", 15: "e8030000", 21: "03", 14: "ffffffff" };
  const isAlone = (header: string, more: Record<number, string> = {}) =>
    listRoutingRules(socketTo(answering(RTM_NEWRULE, bodyOf(header, { ...usual, ...more }))), 2)[0]!.bySourceAlone;
  expect(isAlone("02002000 00000001 00000000")).toBe(true);
  expect(isAlone("02002000 00000001 01000000")).toBe(true); // FIB_RULE_PERMANENT
  expect(isAlone("02000000 00000001 00000000")).toBe(false); // from everywhere
  expect(isAlone("02002008 00000001 00000000")).toBe(false); // with a type of service
  expect(isAlone("02002000 00000006 00000000")).toBe(false); // FR_ACT_BLACKHOLE
  expect(isAlone("02002000 00000001 02000000")).toBe(false); // FIB_RULE_INVERT
  expect(isAlone("02002000 00000001 00000000", { 10: "01000000" })).toBe(false); // FRA_FWMARK
});
