/** The bytes of messages and options at their limits: what is still read, and what is not (RFC 2131, RFC 2132, RFC 3442). */
import { expect, test } from "bun:test";
import { isDomainName, printableBytes, readSearchList } from "../../../../src/services/dhcp/names.ts";
import {
  decodeReply,
  encodeRequest,
  headOfReply,
  LONGEST_BYTES,
} from "../../../../src/services/dhcp/v4/message/message.ts";
import { encodeReply } from "../../../support/dhcp/other-side.ts";
import { readOffer, UnusableOffer } from "../../../../src/services/dhcp/v4/message/offer.ts";
import { readClasslessRoutes, readStaticRoutes } from "../../../../src/services/dhcp/v4/message/routes.ts";
import { ip } from "../../../support/dhcp-simulation.ts";

const bytes = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));
const text = (value: string) => new TextEncoder().encode(value);
const mac = bytes("02 00 00 00 00 07");
const message = (options: [number, Uint8Array][]) => ({
  xid: 0x01020304,
  secs: 5,
  broadcast: false,
  mac,
  options: new Map(options),
});

test("a reply has the fields where RFC 2131 has them", () => {
  const written = encodeReply({
    ...message([[53, Uint8Array.of(2)], [0x51, bytes("")]]),
    ...{ clientAddress: ip("1.2.3.4"), yourAddress: ip("5.6.7.8"), relayAddress: ip("9.10.11.12") },
  });
  expect(written.subarray(0, 34).toHex()).toBe(
    "02010600" + "01020304" + "00050000" + "01020304" + "05060708" + "00000000" + "090a0b0c" + "020000000007",
  );
  // The kind comes first, whatever the other numbers are.
  const first = encodeRequest(message([[1, Uint8Array.of(9)], [53, Uint8Array.of(1)]]));
  expect(first.subarray(240, 247).toHex()).toBe("350101" + "010109" + "ff");
});

test("what every answer has in common with its question", () => {
  const request = encodeRequest(message([]));
  expect(headOfReply(request).map(([at, part]) => [at, part.toHex()])).toEqual([
    [0, "020106"],
    [4, "01020304"],
    [28, "020000000007"],
    [236, "63825363"],
  ]);
});

test("options end exactly at the end of the longest packet, or are too long", () => {
  const room = LONGEST_BYTES - 240 - 1, parts = Math.ceil(room / 257);
  const longest = encodeReply(message([[43, new Uint8Array(room - 2 * parts).fill(7)]]));
  expect(longest.length).toBe(LONGEST_BYTES);
  expect(decodeReply(longest)!.options.get(43)!.length).toBe(room - 2 * parts);
  expect(() => encodeReply(message([[43, new Uint8Array(room - 2 * parts + 1)]]))).toThrow("too long");
  // One of 255 bytes takes one option, and one of 510 takes two.
  for (const length of [255, 510]) {
    const written = encodeReply(message([[43, new Uint8Array(length).fill(7)]])).subarray(240);
    expect(written[length + 2 * length / 255]).toBe(255);
  }
});

test("a message that ends with its last option is whole; one that ends within it is none", () => {
  const head = encodeReply(message([])).subarray(0, 240),
    with_ = (hex: string) => Uint8Array.of(...head, ...bytes(hex));
  expect(decodeReply(head)!.options.size).toBe(0);
  expect(decodeReply(with_("0c 02 61 62"))!.options.get(12)).toEqual(text("ab"));
  expect(decodeReply(with_("0c 00"))!.options.get(12)).toEqual(bytes(""));
  expect([with_("0c"), with_("0c 01"), with_("0c 03 61 62")].map(decodeReply)).toEqual(Array(3).fill(undefined));
});

test.each([[0, [undefined, undefined]], [1, ["f", undefined]], [2, [undefined, "s"]], [3, ["f", "s"]]] as const)(
  "overload %i",
  (overload, expected) => {
    const written = encodeReply(message([[52, Uint8Array.of(overload)]]));
    written.set(bytes("0f 01 66 ff"), 108);
    written.set(bytes("0c 01 73 ff"), 44);
    const { options } = decodeReply(written)!;
    expect([15, 12].map((number) => options.get(number) && String.fromCharCode(...options.get(number)!))).toEqual([
      ...expected,
    ]);
    const without = encodeReply(message([]));
    without.set(bytes("0f 01 66 ff"), 108);
    expect(decodeReply(without)!.options.size).toBe(0);
  },
);

const usual: [number, Uint8Array][] = [[54, ip("10.0.0.1")], [1, ip("255.255.255.0")]];
const offer = (options: [number, Uint8Array][], yourAddress = ip("10.0.0.9")) =>
  readOffer({ yourAddress, options: new Map([...usual, ...options]) });
const one = (number: number, hex: string) => offer([[number, bytes(hex)]]);

test("routers and routes: those that the link, or a route on it, leads to", () => {
  const found = offer([[121, bytes("08 0a 0a000001  10 0a05 00000000  00 0a050001  00 0b000001  00 0a000009")]]);
  expect(found.routes!.map(({ destination, gateway }) => [destination.bits, gateway?.join(".")])).toEqual([
    [16, undefined],
    [8, "10.0.0.1"],
    [0, "10.5.0.1"],
  ]);
  expect(found.ignored).toEqual(["router 11.0.0.1 is not on the link", "router 10.0.0.9 is not on the link"]);
  const { routers, ignored } = one(3, "0a000001 0a000101 7f000001 e0000001");
  expect([routers.map((router) => router.join(".")), ignored.length]).toEqual([["10.0.0.1"], 3]);
});

test("masks and addresses at their limits", () => {
  const under = (mask: string, address: string) => offer([[1, ip(mask)]], ip(address)).address.bits;
  expect([under("255.0.0.0", "10.0.0.9"), under("255.255.255.254", "10.0.0.8"), under("255.255.255.252", "10.0.0.9")])
    .toEqual([8, 31, 30]);
  for (
    const [mask, address] of [["254.0.0.0", "10.0.0.9"], ["255.255.255.252", "10.0.0.8"], ["0.0.0.0", "10.0.0.9"]]
  ) {
    expect(() => under(mask!, address!)).toThrow(UnusableOffer);
  }
  expect([
    under("255.255.255.0", "1.0.0.9"),
    under("255.255.255.0", "223.127.0.9"),
    under("255.255.255.0", "126.0.0.9"),
  ])
    .toEqual([24, 24, 24]);
  expect(() => offer([[1, bytes("ffff00")]])).toThrow(UnusableOffer);
  expect(() => offer([[54, bytes("0a0000")]])).toThrow("whose it is");
});

test("an MTU from 576, a broadcast address of the subnet, and names", () => {
  expect(["023f", "0240", "ffff", "05", "000240"].map((hex) => one(26, hex).mtu)).toEqual([
    undefined,
    576,
    65535,
    undefined,
    undefined,
  ]);
  const broadcast = (hex: string) => one(28, hex).broadcast?.join(".");
  expect([broadcast("0a0000ff"), broadcast("0a0001ff"), broadcast("0a0000"), broadcast("0a0000ff00")]).toEqual([
    "10.0.0.255",
    undefined,
    undefined,
    undefined,
  ]);
  const names = (value: string) => {
    const { domain, search, ignored } = offer([[15, text(value)]]);
    return [domain, search, ignored.length];
  };
  expect([names("a.b"), names("a.b  c.d"), names(" "), names("a.b -"), names("")]).toEqual([
    ["a.b", [], 0],
    ["a.b", ["a.b", "c.d"], 0],
    [undefined, [], 1],
    [undefined, [], 1],
    [undefined, [], 1],
  ]);
});

test("times of a server count when they are in order", () => {
  const times = (lease: number, renew: number, rebind: number) => {
    const value = (number: number) => bytes(number.toString(16).padStart(8, "0"));
    return Object.values(offer([[51, value(lease)], [58, value(renew)], [59, value(rebind)]]).times);
  };
  expect([times(100, 1, 2), times(100, 98, 99)]).toEqual([[100, 1, 2], [100, 98, 99]]);
  for (const [renew, rebind] of [[0, 50], [50, 50], [50, 100]]) {
    expect(times(100, renew!, rebind!)).toEqual([100, 50, 87.5]);
  }
  expect(offer([[51, bytes("0064")]]).times.lease).toBe(3600);
});

test("classless routes: of one host, of 64 destinations, and what is refused only where it is a destination", () => {
  const read = (hex: string) =>
    readClasslessRoutes(bytes(hex))?.map(({ destination }) => destination.bytes.join("."));
  expect(read("20 0a000005 0a000001")).toEqual(["10.0.0.5"]);
  expect(read("08 0a ff000001")).toEqual(["10.0.0.0"]);
  // Bits behind the destination's are the router's, not its.
  expect([read("08 0a 01020304"), read("01 ff 0a000001"), read("01 7f 0a000001")]).toEqual([
    ["10.0.0.0"],
    ["128.0.0.0"],
    ["0.0.0.0"],
  ]);
  expect([read("01 80 0a000001"), read("03 e0 0a000001"), read("08 7f 0a000001")]).toEqual([
    ["128.0.0.0"],
    undefined,
    undefined,
  ]);
  expect([64, 65].map((count) => readClasslessRoutes(new Uint8Array(count * 5))?.length)).toEqual([64, undefined]);
});

test("static routes: the router follows its destination; there are 64", () => {
  const read = readStaticRoutes(bytes("80010000 0a000001 0b000000 0a000002 7e000000 0a000003 bf000000 0a000004"))!;
  expect(read.map(({ destination: { bytes, bits }, gateway }) => `${bytes.join(".")}/${bits} ${gateway!.join(".")}`))
    .toEqual(["128.1.0.0/16 10.0.0.1", "11.0.0.0/8 10.0.0.2", "126.0.0.0/8 10.0.0.3", "191.0.0.0/16 10.0.0.4"]);
  expect(readStaticRoutes(bytes("c0000100 0a000001"))![0]!.destination.bits).toBe(24);
  const many = (count: number) => bytes("0b000000 0a000001".repeat(count));
  expect([64, 65].map((count) => readStaticRoutes(many(count))?.length)).toEqual([64, undefined]);
  for (const wrong of ["", "00000000 c0a84d01", "0a000000", "7f000000 c0a84d01"]) {
    expect(readStaticRoutes(bytes(wrong))).toBeUndefined();
  }
});

test("names at their limits: 63 letters a label, 253 a name, 32 in a list", () => {
  const label = "a".repeat(63), longest = [label, label, label, "a".repeat(61)].join(".");
  expect([longest, `${longest}a`].map(isDomainName)).toEqual([true, false]);
  const encoded = (name: string) =>
    name.split(".").map((one) => one.length.toString(16).padStart(2, "0") + text(one).toHex()).join("") + "00";
  expect([longest, `${longest}a`, `${label}a.b`].map((name) => readSearchList(bytes(encoded(name))))).toEqual([
    [longest],
    undefined,
    undefined,
  ]);
  expect([32, 33].map((count) => readSearchList(bytes("01 61 00".repeat(count)))?.length)).toEqual([32, undefined]);
  expect(readSearchList(bytes(""))).toEqual([]);
});

test("pointers of a search list: to what is before, far away, never in a loop, and reading goes on behind", () => {
  const list = new Uint8Array(300);
  expect(readSearchList(bytes("01 61 00 01 62 c000 01 63 c003"))).toEqual(["a", "b.a", "c.b.a"]);
  list.set(bytes("01 61 00"));
  for (let at = 3; at < 284; at += 16) list.set(bytes(`0e ${"62".repeat(14)} 00`), at);
  expect(readSearchList(Uint8Array.of(...list.subarray(0, 259), ...bytes("01 64 c003 01 65 c0f3")))!.slice(-2))
    .toEqual([
      `d.${"b".repeat(14)}`,
      `e.${"b".repeat(14)}`,
    ]);
  const beyond = Uint8Array.of(...list.subarray(0, 275), ...bytes("01 64 c103"));
  expect(readSearchList(beyond)!.at(-1)).toBe(`d.${"b".repeat(14)}`);
  const cut = ["01 61 00 c0", "01 61 00 02 62", "01 61 00 01 62", "3f 61", "01 61", "02 61", "c0"];
  for (const wrong of [...cut, "c000", "01 61 c000", "c002 c000", "01 20 00", "00"]) {
    expect(readSearchList(bytes(wrong))).toBeUndefined();
  }
});

test("a text is plain from the space to the tilde", () => {
  expect(printableBytes(bytes("1f 20 7e 7f 5b 5c 5d"))).toBe("\\x1f ~\\x7f[\\x5c]");
});
