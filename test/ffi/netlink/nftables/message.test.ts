/** Our nftables messages equal those that nft(8) sends for the same text (test/golden/nftables). */
import { expect, test } from "bun:test";
import {
  destinationAddress,
  destinationChanged,
  destinationPortInto,
  from,
  inputLink,
  loadsSource,
  multicast4,
  notTo,
  protocolFamily,
  sourceAddress,
  sourceMac,
  toThisHost,
  transportProtocolInto,
} from "../../../../src/ffi/netlink/nftables/packet-match.ts";
import { ruleExpressions } from "../../../../src/interop/iptables/nft-rule.ts";
import { addBaseChain, addTable, createChain, createCounter } from "../../../../src/ffi/netlink/nftables/table.ts";
import {
  comparedValue,
  countIn,
  countsIn,
  equals,
  isIn,
  looksInto,
  valueIn,
} from "../../../../src/ffi/netlink/nftables/compare.ts";
import {
  type Expression,
  type FoundExpression,
  isSameRule,
  registerAt,
} from "../../../../src/ffi/netlink/nftables/expression.ts";
import { accept, destinationNat, jump, jumpTarget, masquerade } from "../../../../src/ffi/netlink/nftables/action.ts";
import { matchedComment } from "../../../../src/ffi/netlink/nftables/extension.ts";
import { messageType, type NftMessage, writeBody } from "../../../../src/ffi/netlink/nftables/message.ts";
import { addRule } from "../../../../src/ffi/netlink/nftables/rule.ts";
import {
  createCounterMap,
  createElement,
  createIntervalMap,
  createMap,
  createSet,
  delElement,
  ipv4AndPort,
  ipv4Key,
  ipv4ProtocolAndPortKey,
  ipv6AndPort,
  ipv6ProtocolAndPortKey,
  linkNameAndMacKey,
  markPairKey,
  protocolAndPortKey,
} from "../../../../src/ffi/netlink/nftables/set.ts";
import { NFT_REG_2 } from "../../../../src/ffi/netlink/uapi/nf-tables.ts";
import { parsePrefix } from "../../../../src/net/address.ts";
import { golden } from "../../../support/golden.ts";
import { bytesBy } from "../fake-kernel.ts";

const chain4 = { table: { family: 2, name: "nat" }, name: "CNI-e4c76feec97a77ba32cd962b" };
const prefix = (text: string) => parsePrefix(text)!;
const ourTable = { family: 1, name: "patchbay_masquerade" };
const ours = { table: ourTable, name: "postrouting" };
const map = { table: ourTable, name: "from_10.88.0.0/16" };
const bridgeTable = { family: 7, name: "patchbay_macspoofchk" };
const prerouting = { table: bridgeTable, name: "prerouting" };
const allowed = { table: bridgeTable, name: "allowed" };
const linkAndMac = new Uint8Array(24);
linkAndMac.set(new TextEncoder().encode("veth1234"));
linkAndMac.set([2, 0, 0, 0, 0, 5], 16);
const element = { key: prefix("10.88.0.5/32").bytes, comment: "id: c, if: eth0", counter: map.name };

const portmap = (name: string) => ({ table: { family: 1, name: "patchbay_portmap" }, name });
const ports9000 = {
  key: new Uint8Array([192, 0, 2, 1, 17, 0, 0, 0, 9000 >> 8, 9000 & 0xff, 0, 0]),
  keyEnd: new Uint8Array([192, 0, 2, 1, 17, 0, 0, 0, 9099 >> 8, 9099 & 0xff, 0, 0]),
};

type Values = Record<string, unknown>;

/** nft adds hints for its own listings and the numbers sets have in its batch, and leaves out flags that change nothing. */
const alike: Record<string, NftMessage> = {
  "nft-counter": createCounter(ourTable, map.name),
  "iptables-chain": createChain(chain4),
  "nft-table": addTable(ourTable, "hello"),
  "nft-base-chain": addBaseChain(ours, { type: "nat", hook: 4, priority: 100 }),
  "nft-map": { ...createCounterMap(map, ipv4Key) },
  "nft-bridge-chain": addBaseChain(prerouting, { type: "filter", hook: 0, priority: -300 }),
  "nft-bridge-set": createSet(allowed, linkNameAndMacKey),
  "nft-element": createElement(map, element),
  "nft-masquerade": addRule(ours, [
    protocolFamily,
    equals(new Uint8Array([2])),
    ...notTo(prefix("10.88.0.0/16")),
    ...notTo(multicast4),
    sourceAddress(4),
    countIn(map.name),
    masquerade,
  ]),
  "nft-delete-element": delElement(map, element.key),
  "nft-port-map": createMap(portmap("ports_ipv4"), protocolAndPortKey, ipv4AndPort),
  "nft-port-map-6": createMap(portmap("ports_at_ipv6"), ipv6ProtocolAndPortKey, ipv6AndPort),
  "nft-range-map": createIntervalMap(portmap("ranges_at_ipv4"), ipv4ProtocolAndPortKey, ipv4Key),
  "nft-owner-map": createCounterMap(portmap("owners_ipv4"), markPairKey),
  "nft-port": createElement(portmap("ports_ipv4"), {
    key: new Uint8Array([6, 0, 0, 0, 8080 >> 8, 8080 & 0xff, 0, 0]),
    data: new Uint8Array([10, 88, 0, 5, 0, 80, 0, 0]),
    comment: "id: c",
  }),
  "nft-range": createElement(portmap("ranges_at_ipv4"), {
    ...ports9000,
    data: new Uint8Array([10, 88, 0, 5]),
    comment: "id: c",
  }),
  "nft-delete-range": delElement(portmap("ranges_at_ipv4"), ports9000.key, ports9000.keyEnd),
  "nft-port-rule": addRule(portmap("mapped"), [
    protocolFamily,
    equals(new Uint8Array([2])),
    transportProtocolInto(registerAt(0)),
    destinationPortInto(registerAt(1)),
    valueIn("ports_ipv4"),
    destinationNat(4, { withPort: true }),
  ]),
  "nft-port-rule-6": addRule(portmap("mapped"), [
    protocolFamily,
    equals(new Uint8Array([10])),
    destinationAddress(16),
    transportProtocolInto(registerAt(4)),
    destinationPortInto(registerAt(5)),
    valueIn("ports_at_ipv6"),
    destinationNat(16, { withPort: true }),
  ]),
  "nft-local": addRule(portmap("entrance"), [...toThisHost, jump("mapped")]),
  "nft-mapped": addRule(portmap("postrouting"), [
    ...destinationChanged,
    protocolFamily,
    equals(new Uint8Array([2])),
    ...from(prefix("10.88.0.0/16")),
    masquerade,
  ]),
  "nft-bridge-element": createElement(allowed, { key: linkAndMac, comment: "id: c, if: eth0" }),
  "nft-bridge-rule": addRule(prerouting, [inputLink, sourceMac(NFT_REG_2), isIn("allowed"), accept]),
};

for (const [name, message] of Object.entries(alike)) {
  test(`${name}: every attribute of ours, with the same value`, () => {
    const theirs = golden(`nftables/${name}`);
    const header = new DataView(theirs.buffer);
    expect([header.getUint16(4, true), theirs[16]]).toEqual([messageType(message.type), message.family]);
    const ours = bytesBy((writer) => writeBody(writer, message));
    const { id: _, expressions: __, ...said } = message.table.decode(ours.subarray(4)) as Values;
    expect(message.table.decode(theirs.subarray(20)) as Values).toMatchObject(said);
  });
}

const ruleNames = Object.keys(alike).filter((name) => "expressions" in alike[name]!.values);

function foundIn(name: string): FoundExpression[] {
  const { table } = addRule(ours, []);
  return (table.decode(golden(`nftables/${name}`).subarray(20)) as { expressions: FoundExpression[] }).expressions;
}

test("a rule is recognised as the same, and as none of the others", () => {
  for (const name of ruleNames) {
    const wanted = alike[name]!.values.expressions as Expression[];
    expect(ruleNames.filter((other) => isSameRule(wanted, foundIn(other)))).toEqual([name]);
  }
});

test("what a rule jumps to, says, compares and counts in is read from it", () => {
  expect(jumpTarget(foundIn("iptables-jump"))).toBe(chain4.name);
  expect(jumpTarget(foundIn("iptables-accept"))).toBeUndefined();
  expect(looksInto(foundIn("nft-port-rule"))).toBe("ports_ipv4");
  expect(looksInto(foundIn("nft-local"))).toBeUndefined();
  expect(matchedComment(foundIn("ip6tables-masquerade"))).toBe('name: "mynet" id: "ctr-0001"');
  expect(matchedComment(foundIn("nft-masquerade"))).toBeUndefined();
  expect(comparedValue(foundIn("iptables-jump"))).toEqual(prefix("10.88.0.5/32").bytes);
  expect(loadsSource(foundIn("iptables-jump")[0]!, 4)).toBe(true);
  expect(loadsSource(foundIn("iptables-accept")[0]!, 4)).toBe(false);
  expect(countsIn(foundIn("nft-masquerade"))).toBe(map.name);
  expect(countsIn(foundIn("nft-bridge-rule"))).toBeUndefined();
});

test("a counter that has counted is the same, a changed value is not", () => {
  const found = foundIn("iptables-accept");
  const wanted = ruleExpressions({
    destination: { prefix: prefix("10.88.0.0/16") },
    comment: 'name: "mynet" id: "ctr-0001"',
    target: "ACCEPT",
  }, 4);
  const change = (name: string, at: number) =>
    found.map((each) => {
      if (each.name !== name) return each;
      const data = each.data.slice();
      data[at]! ^= 1;
      return { ...each, data };
    });
  expect(isSameRule(wanted, change("counter", 11))).toBe(true);
  expect(isSameRule(wanted, change("payload", 15))).toBe(false);
  expect(isSameRule(wanted, found.slice(1))).toBe(false);
});
