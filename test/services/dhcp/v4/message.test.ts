/** DHCP messages as bytes: what is written is read again, and malformed ones are no messages. */
import { expect, test } from "bun:test";
import {
  decodeReply,
  encodeRequest,
  type Message,
  option,
} from "../../../../src/services/dhcp/v4/message/message.ts";
import { decodeRequest, encodeReply } from "../../../support/dhcp/other-side.ts";
import { isDomainName, printableBytes } from "../../../../src/services/dhcp/names.ts";
import { readOffer, UnusableOffer } from "../../../../src/services/dhcp/v4/message/offer.ts";
import { readClasslessRoutes } from "../../../../src/services/dhcp/v4/message/routes.ts";
import { ip } from "../../../support/dhcp-simulation.ts";

const bytes = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));
const text = (value: string) => new TextEncoder().encode(value);

const mac = bytes("02 00 00 00 00 07");

function reply(options: [number, Uint8Array][], yourAddress = ip("192.168.77.50")): Message {
  return { xid: 7, secs: 0, broadcast: false, yourAddress, mac, options: new Map(options) };
}

const usual: [number, Uint8Array][] = [
  [option.messageType, Uint8Array.of(2)],
  [option.server, ip("192.168.77.1")],
  [option.subnetMask, ip("255.255.255.0")],
];

test("a message is read as it was written", () => {
  const message: Message = {
    xid: 0xfedcba98,
    secs: 300,
    broadcast: true,
    clientAddress: ip("10.0.0.1"),
    yourAddress: ip("10.0.0.2"),
    relayAddress: ip("10.0.0.3"),
    mac,
    options: new Map([[53, Uint8Array.of(1)], [1, ip("255.0.0.0")], [61, new Uint8Array(600).fill(5)], [
      80,
      bytes(""),
    ]]),
  };
  expect(decodeRequest(encodeRequest(message))).toEqual(message);
  expect(decodeReply(encodeReply(message))).toEqual(message);
  expect(decodeReply(encodeRequest(message))).toBeUndefined();
});

test("a request is at least 300 bytes, and has the fields where RFC 2131 has them", () => {
  const options = new Map([[55, Uint8Array.of(3, 1)], [53, Uint8Array.of(1)]]);
  const written = encodeRequest({ xid: 0x01020304, secs: 5, broadcast: true, mac, options });
  expect(written.length).toBe(300);
  expect(written.subarray(0, 12).toHex()).toBe("010106000102030400058000");
  expect(written.subarray(28, 34).toHex()).toBe("020000000007");
  expect(written.subarray(236, 249).toHex()).toBe("63825363" + "350101" + "37020301" + "ff" + "00");
});

test("options go on in the fields of names, when option 52 says so", () => {
  const plain = encodeReply(reply([[52, Uint8Array.of(3)], [12, text("a")]]));
  plain.set([12, 1, 0x62, 255], 108);
  plain.set([12, 1, 0x63, 0, 0, 15, 1, 0x64], 44);
  const { options } = decodeReply(plain)!;
  expect([options.get(12), options.get(15)]).toEqual([text("abc"), text("d")]);
});

test.each([
  ["empty", ""],
  ["cut before its options", encodeReply(reply(usual)).subarray(0, 239).toHex()],
  ["of another cookie", encodeReply(reply(usual)).fill(0, 236, 240).toHex()],
  ["of another kind of link", encodeReply(reply(usual)).fill(6, 1, 2).toHex()],
])("bytes that are %s are no message", (_what, hex) => {
  expect(decodeReply(Uint8Array.fromHex(hex))).toBeUndefined();
});

test("more options than a server has, and more bytes than a link carries, are no message", () => {
  const message = (count: number, length: number) => {
    const bytes = new Uint8Array(length);
    bytes.set(encodeReply(reply([])).subarray(0, 240));
    for (let index = 0; index < count; index++) bytes[240 + 2 * index] = 224;
    return bytes;
  };
  expect([128, 129, 600].map((count) => decodeReply(message(count, 1472)) !== undefined)).toEqual([
    true,
    false,
    false,
  ]);
  expect([1472, 1473].map((length) => decodeReply(message(1, length)) !== undefined)).toEqual([true, false]);
});

test("what a server offers", () => {
  const offered = readOffer(reply([
    ...usual,
    [option.routers, bytes("c0a84d01 c0a84d02")],
    [option.nameServers, ip("192.168.77.1")],
    [option.domainName, text("example.org\0")],
    [option.mtu, bytes("0578")],
    [option.leaseTime, bytes("00000064")],
    [option.renewalTime, bytes("0000000a")],
    [option.rebindingTime, bytes("00000014")],
    [option.timeServers, bytes("0102")],
  ]));
  expect(offered).toEqual({
    address: { bytes: ip("192.168.77.50"), bits: 24 },
    server: ip("192.168.77.1"),
    routers: [ip("192.168.77.1"), ip("192.168.77.2")],
    routes: undefined,
    isClassless: false,
    nameServers: [ip("192.168.77.1")],
    domain: "example.org",
    search: [],
    timeServers: [],
    mtu: 1400,
    broadcast: undefined,
    times: { lease: 100, renew: 10, rebind: 20 },
    ignored: ["option 42 is malformed: 0102"],
  });
});

test("of addresses in a list: no more than are used, and none that is no host's", () => {
  const list = (count: number) =>
    bytes(Array.from({ length: count }, (_, index) => `c0a84d${(index + 1).toString(16).padStart(2, "0")}`).join(""));
  const strange = bytes("00000000 7f000001 e0000001 ffffffff c0a84d01");
  const found = readOffer(reply([
    ...usual,
    ...[option.routers, option.nameServers, option.timeServers].map((number) =>
      [number, list(20)] as [number, Uint8Array]
    ),
  ]));
  expect([found.routers.length, found.nameServers.length, found.timeServers.length]).toEqual([4, 8, 8]);
  const rest = readOffer(reply([
    ...usual,
    ...[option.routers, option.nameServers, option.timeServers].map((number) =>
      [number, strange] as [number, Uint8Array]
    ),
  ]));
  const only = [ip("192.168.77.1")];
  // The fifth router is one too many.
  expect([rest.routers, rest.nameServers, rest.timeServers]).toEqual([[], only, only]);
  for (const routers of ["c0a84d32", "c0a84d01 c0a84d32"]) {
    expect(() => readOffer(reply([...usual, [option.routers, bytes(routers)]]))).toThrow(
      "the server's or a router's",
    );
  }
});

test.each([
  ["no times", [], { lease: 3600, renew: 1800, rebind: 3150 }],
  ["a lease for ever", [[51, "ffffffff"]], { lease: Infinity, renew: Infinity, rebind: Infinity }],
  ["T1 of 0", [[51, "00000064"], [58, "00000000"]], { lease: 100, renew: 50, rebind: 87.5 }],
] as [string, [number, string][], object][])("times: %s", (_what, options, times) => {
  const given = options.map(([number, hex]): [number, Uint8Array] => [number, bytes(hex)]);
  expect(readOffer(reply([...usual, ...given])).times).toEqual(times as never);
});

test.each([
  ["0.0.0.1", "255.255.255.0"],
  ["127.0.0.1", "255.0.0.0"],
  ["224.0.0.1", "255.255.255.0"],
  ["255.255.255.255", "255.255.255.0"],
  ["192.168.77.0", "255.255.255.0"],
  ["192.168.77.255", "255.255.255.0"],
  ["192.168.77.1", "255.255.255.0"],
  ["192.168.77.50", "255.0.255.0"],
])("%s with the mask %s is refused", (address, mask) => {
  const options = usual.map(([number, value]): [number, Uint8Array] => [number, number === 1 ? ip(mask) : value]);
  expect(() => readOffer(reply(options, ip(address)))).toThrow(UnusableOffer);
});

test("without mask, without server, with a lease of 0 an offer is refused", () => {
  expect(() => readOffer(reply(usual.filter(([number]) => number !== 1)))).toThrow(
    "Subnet Mask not found in DHCPACK",
  );
  expect(() => readOffer(reply(usual.filter(([number]) => number !== 54)))).toThrow("whose it is");
  expect(() => readOffer(reply([...usual, [51, bytes("00000000")]]))).toThrow("lease time is 0");
  expect(readOffer(reply([...usual, [1, ip("255.255.255.255")]])).address.bits).toBe(32);
});

test("classless routes: on-link ones first, host bits cleared, malformed ones refused", () => {
  const read = readClasslessRoutes(bytes("00 c0a84d01  18 0a0102 00000000  09 0aff c0a84d02"))!;
  expect(read.map(({ destination, gateway }) => [destination.bytes.join("."), destination.bits, gateway?.join(".")]))
    .toEqual([["10.1.2.0", 24, undefined], ["0.0.0.0", 0, "192.168.77.1"], ["10.128.0.0", 9, "192.168.77.2"]]);
  for (const wrong of ["21 0a000000 00 c0a84d01", "18 0a0102 c0a84d", "00 c0a84d01 00"]) {
    expect(readClasslessRoutes(bytes(wrong))).toBeUndefined();
  }
});

test("names and texts of servers carry nothing else", () => {
  for (const name of ["a", "a-b.c_d", `${"x".repeat(63)}.org`]) expect(isDomainName(name)).toBe(true);
  for (const name of ["", ".", "a..b", "-a", "a-", "a b", "a/b", "$(x)", `${"x".repeat(64)}.org`]) {
    expect(isDomainName(name)).toBe(false);
  }
  expect(printableBytes(text("no\n\x1b[31m\\"))).toBe("no\\x0a\\x1b[31m\\x5c");
});

test("random bytes are read or refused, and what is read stays what it is", () => {
  let state = 12345;
  const random = (most: number) => (state = (state * 1103515245 + 12345) & 0x7fffffff) % most;
  const seed = encodeReply(
    reply([...usual, [52, Uint8Array.of(3)], [121, bytes("00 c0a84d01")], [119, bytes("01 61 00")]]),
  );
  let sound = 0;
  for (let round = 0; round < 200_000; round++) {
    const wrong = seed.slice(0, random(10) === 0 ? random(seed.length) : seed.length);
    for (let change = random(6); change >= 0; change--) wrong[40 + random(260)] = random(256);
    const message = decodeReply(wrong);
    if (message === undefined) continue;
    sound++;
    if (encodedBytes(message) < 1200) expect(decodeReply(encodeReply(message))).toEqual(message);
    try {
      readOffer(message);
    } catch (error) {
      if (!(error instanceof UnusableOffer)) throw error;
    }
  }
  expect(sound).toBeGreaterThan(1000);
});

function encodedBytes({ options }: Message): number {
  return [...options.values()].reduce((sum, value) => sum + value.length + 2, 0);
}
