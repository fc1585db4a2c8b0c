/** What a server gives, each option sound and malformed (RFC 8415 section 18.2.10, RFC 3646, RFC 5908). */
import { expect, test } from "bun:test";
import {
  encodeIaAddress,
  type Message6,
  option,
  type Options6,
  REPLY,
} from "../../../../src/services/dhcp/v6/message/message.ts";
import { isGlobal, readReply, type Reply, UnusableReply } from "../../../../src/services/dhcp/v6/message/offer.ts";
import { iaid, ip6, type Said, said, server, uint32 } from "../../../support/dhcp6-simulation.ts";

const bytes = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));
const text = (value: string) => new TextEncoder().encode(value);
const asked: Message6 = { type: 1, xid: 7, options: [] };
const read = (say: Said = {}, current?: Uint8Array) => readReply(said(REPLY, asked, say), iaid, current);
const readMore = (...more: Options6) => read({ more });

test("what a server gives", () => {
  const reply = read({
    renew: 100,
    rebind: 200,
    more: [
      [option.preference, bytes("07")],
      [option.nameServers, bytes("fd000000000000000000000000000053 fd000000000000000000000000000054")],
      [option.search, bytes("03 656e67 07 6578616d706c65 03 6f7267 00 01 61 00")],
      [option.timeServers, bytes("0001 0010 fd000000000000000000000000000123 0003 0003 016100")],
      [option.longestSolicitPause, uint32(120)],
    ],
  });
  expect(reply).toEqual({
    server,
    preference: 7,
    status: { code: 0, text: "" },
    binding: { address: ip6("fd00:77::50"), preferred: 600, valid: 1000, renew: 100, rebind: 200 },
    withdrawn: [],
    nameServers: [ip6("fd00::53"), ip6("fd00::54")],
    search: ["eng.example.org", "a"],
    timeServers: [ip6("fd00::123")],
    solMaxRt: 120,
    ignored: [],
  });
});

test("what a server does not say is usual", () => {
  expect(read({ addresses: null })).toEqual({
    server,
    preference: 0,
    status: { code: 0, text: "" },
    binding: undefined,
    withdrawn: [],
    nameServers: [],
    search: [],
    timeServers: [],
    solMaxRt: undefined,
    ignored: [],
  });
});

test.each([
  ["::", false],
  ["::1", false],
  ["::10.0.0.1", false],
  ["64:ff9b::1", false],
  ["fe80::1", false],
  ["fec0::1", false],
  ["ff02::1", false],
  ["4000::1", false],
  ["2000::1", true],
  ["2001:db8::1", true],
  ["3fff::1", true],
  ["fc00::1", true],
  ["fd00::1", true],
])("%s is an address of a host: %p", (address, isOne) => {
  expect(isGlobal(ip6(address))).toBe(isOne);
  const give = () => read({ addresses: [{ address: ip6(address) }] }).binding!.address;
  if (isOne) expect(give()).toEqual(ip6(address));
  else expect(give).toThrow(new UnusableReply(`${address.replace("10.0.0.1", "a00:1")} is no address of a host`));
});

test("an IPv4-mapped address is no host's", () => {
  const mapped = bytes("00000000000000000000ffff0a000001");
  expect(() => read({ addresses: [{ address: mapped }] })).toThrow("is no address of a host");
});

test.each<[string, Said, string]>([
  ["without a server", { server: null }, "whose it is"],
  ["of a server with too short a DUID", { server: bytes("0001") }, "whose it is"],
  ["of a server with too long a DUID", { server: new Uint8Array(131) }, "whose it is"],
  ["with T1 after T2", { renew: 101, rebind: 100 }, "T1 of 101 s is after T2 of 100 s"],
  ["with T1 for ever and a T2", { renew: Infinity, rebind: 100 }, "is after T2"],
  ["with an address preferred for longer than it is valid", { addresses: [{ preferred: 2, valid: 1 }] }, "but valid"],
  ["with an address preferred for ever", { addresses: [{ preferred: Infinity }] }, "preferred for Infinity s"],
  ["with a cut IA", { addresses: null, more: [[3, bytes("01020304 00000000")]] }, "an IA is malformed"],
  ["with a cut address", {
    addresses: null,
    more: [[3, bytes("01020304 00000000 00000000 0005 0004 fd000000")]],
  }, "an address is malformed"],
  ["with a cut status", { more: [[13, bytes("00")]] }, "a status is malformed"],
  ["with a status in the address's options", {
    addresses: [{ options: [[13, bytes("0001")]] }],
  }, "fd00:77::50 has the status 1"],
  ["with a cut status in the address's options", { addresses: [{ options: [[13, bytes("")]] }] }, "a status is"],
])("a message %s is unusable", (_what, say, problem) => {
  expect(() => read(say)).toThrow(UnusableReply);
  expect(() => read(say)).toThrow(problem);
});

test.each<[string, Said, { renew: number; rebind: number }]>([
  ["none", {}, { renew: 300, rebind: 480 }],
  ["both", { renew: 7, rebind: 7 }, { renew: 7, rebind: 7 }],
  ["T1 alone", { renew: 100 }, { renew: 100, rebind: 480 }],
  ["T1 alone, late", { renew: 500 }, { renew: 500, rebind: 500 }],
  ["T2 alone", { rebind: 400 }, { renew: 300, rebind: 400 }],
  ["T2 alone, early", { rebind: 200 }, { renew: 200, rebind: 200 }],
  ["T1 at the end", { renew: 1000, rebind: 1000 }, { renew: 300, rebind: 480 }],
  ["T2 at the end", { renew: 900, rebind: 1000 }, { renew: 300, rebind: 480 }],
  ["never, though the lease ends", { renew: Infinity, rebind: Infinity }, { renew: 300, rebind: 480 }],
  ["none, for ever", { addresses: [{ preferred: Infinity, valid: Infinity }] }, {
    renew: Infinity,
    rebind: Infinity,
  }],
  ["some, for ever", { renew: 5, rebind: 6, addresses: [{ preferred: 100, valid: Infinity }] }, {
    renew: 5,
    rebind: 6,
  }],
  ["none, not preferred", { addresses: [{ preferred: 0, valid: 100 }] }, { renew: 50, rebind: 80 }],
])("times that a server gives: %s", (_what, say, { renew, rebind }) => {
  expect(read(say).binding).toMatchObject({ renew, rebind });
});

test("of several addresses: the current one, then the first that is preferred", () => {
  const [one, two, old] = [ip6("fd00::1"), ip6("fd00::2"), ip6("fd00::3")];
  const chosen = (addresses: Said["addresses"], current?: Uint8Array) =>
    read({ addresses }, current).binding?.address;
  expect(chosen([{ address: one }, { address: two }])).toEqual(one);
  expect(chosen([{ address: one }, { address: two }], two)).toEqual(two);
  expect(chosen([{ address: old, preferred: 0 }, { address: two }], old)).toEqual(two);
  expect(chosen([{ address: one, preferred: 0 }, { address: old, preferred: 0 }], old)).toEqual(old);
  expect(chosen([])).toBeUndefined();
});

test("an unusable address beside a usable one is said, one for 0 seconds is withdrawn", () => {
  const reply = read({
    addresses: [{ address: ip6("fe80::1") }, {}, { address: ip6("fd00::9"), preferred: 0, valid: 0 }],
  });
  expect([reply.binding!.address, reply.withdrawn, reply.ignored]).toEqual([
    ip6("fd00:77::50"),
    [ip6("fd00::9")],
    ["fe80::1 is no address of a host"],
  ]);
  expect(read({ addresses: [{ preferred: 0, valid: 0 }] }).binding).toBeUndefined();
});

test("an IA of another interface is not ours", () => {
  expect(read({ iaid: bytes("01020305") }).binding).toBeUndefined();
  const both = read({ iaid: bytes("01020305"), more: said(REPLY, asked).options.filter(([number]) => number === 3) });
  expect(both.binding!.address).toEqual(ip6("fd00:77::50"));
});

test.each<[string, Said, Reply["status"]]>([
  ["of the message", { status: 2 }, { code: 2, text: "so\\x0a" }],
  ["of the IA", { iaStatus: 3 }, { code: 3, text: "so\\x0a" }],
  ["of both, the message's", { status: 4, iaStatus: 3 }, { code: 4, text: "so\\x0a" }],
  ["of the IA, when the message's is a success", { status: 0, iaStatus: 3 }, { code: 3, text: "so\\x0a" }],
])("a status %s counts, and then there is no address", (_what, say, status) => {
  const reply = read(say);
  expect([reply.status, reply.binding]).toEqual([status, undefined]);
  expect(read({ status: 0, iaStatus: 0 }).binding).toBeDefined();
});

test.each([
  [option.preference, ""],
  [option.preference, "0102"],
  [option.nameServers, ""],
  [option.nameServers, "fd00"],
  [option.search, ""],
  [option.search, "03 656e"],
  [option.search, "01 61"],
  [option.search, "c000"],
  [option.search, "016100 c000" + "61".repeat(250) + "00"],
  [option.search, "016100 40" + "61".repeat(64) + "00"],
  [option.search, "00"],
  [option.search, "01 20 00"],
  [option.search, "01 61 00 01"],
  [option.timeServers, "0001 0010 fd"],
  [option.timeServers, "0001 0004 0a000001"],
  [option.longestSolicitPause, "0000003b"],
  [option.longestSolicitPause, "00015181"],
  [option.longestSolicitPause, "ffffffff"],
  [option.longestSolicitPause, "78"],
])("option %i that is %p is ignored, and said", (number, hex) => {
  const usual = read(), reply = readMore([number, bytes(hex)]);
  expect(reply).toEqual({
    ...usual,
    ignored: [`option ${number} is malformed: ${hex.replaceAll(" ", "").slice(0, 128)}`],
  });
});

test("the bounds themselves are obeyed", () => {
  for (const seconds of [60, 86400]) {
    expect(readMore([82, uint32(seconds)])).toMatchObject({ solMaxRt: seconds, ignored: [] });
  }
});

test("name servers and time servers that no host can ask are left out; there are eight at most", () => {
  const reply = readMore([23, bytes("fe800000000000000000000000000001 fd000000000000000000000000000053")]);
  expect([reply.nameServers, reply.ignored]).toEqual([
    [ip6("fd00::53")],
    ["option 23 has fe80::1, no server's address"],
  ]);
  expect(readMore([23, new Uint8Array(16 * 9).fill(0xfd)]).nameServers.length).toBe(8);
  expect(readMore([56, bytes("0001 0010 ff050000000000000000000000000101")]).timeServers).toEqual([]);
  expect(readMore([56, bytes(`0001 0010 ${"fd".repeat(16)}`.repeat(9))]).timeServers.length).toBe(8);
});

test("a search list has 32 names at most", () => {
  expect(readMore([24, bytes("016100".repeat(32))]).search.length).toBe(32);
  expect(readMore([24, bytes("016100".repeat(33))]).search).toEqual([]);
});

test("what a server writes is escaped and cut", () => {
  const long = readMore([13, new Uint8Array([0, 1, ...text("\x1b".repeat(1000))])]);
  expect(long.status.text).toBe("\\x1b".repeat(256));
});

test("of an option that may stand once the first counts", () => {
  expect(readMore([option.preference, bytes("01")], [option.preference, bytes("02")]).preference).toBe(1);
  const ia = encodeIaAddress({ address: ip6("fd00::1"), preferred: 1, valid: 1, options: [] });
  // An address outside of an IA does not count.
  expect(read({ addresses: null, more: [[option.iaAddress, ia]] }).binding).toBeUndefined();
});
