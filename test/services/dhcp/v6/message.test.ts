/** DHCPv6 messages as bytes: what is written is read again, and malformed ones are no messages (RFC 8415 section 21). */
import { expect, test } from "bun:test";
import {
  all,
  decode,
  decodeIa,
  decodeIaAddress,
  decodeStatus,
  encode,
  encodeIa,
  encodeIaAddress,
  isDuid,
  LONGEST_BYTES,
  type Message6,
  option,
  REPLY,
  statusName,
} from "../../../../src/services/dhcp/v6/message/message.ts";
import { readReply, UnusableReply } from "../../../../src/services/dhcp/v6/message/offer.ts";
import { iaid, ip6, said } from "../../../support/dhcp6-simulation.ts";

const bytes = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));
const empty: Message6 = { type: REPLY, xid: 7, options: [] };

test("a message is read as it was written, repeated options apart and in order", () => {
  const message: Message6 = {
    type: 11,
    xid: 0xfedcba,
    options: [[8, bytes("0102")], [65535, bytes("")], [8, bytes("03")], [1, new Uint8Array(300).fill(5)]],
  };
  expect(decode(encode(message))).toEqual(message);
  expect(decode(encode(empty))).toEqual(empty);
  expect(all(message.options, 8)).toEqual([bytes("0102"), bytes("03")]);
});

test("more options than a server has are no message, and within an association no association", () => {
  const options = (count: number) => Array.from({ length: count }, () => [200, bytes("")] as const);
  expect([128, 129, 300].map((count) => decode(encode({ ...empty, options: options(count) })) !== undefined))
    .toEqual([true, false, false]);
  expect(
    [128, 129].map((count) =>
      decodeIa(encodeIa({ iaid, renew: 1, rebind: 2, options: options(count) })) !== undefined
    ),
  )
    .toEqual([true, false]);
});

test("fields are where RFC 8415 has them", () => {
  const address = { address: ip6("fd00::1"), preferred: 16, valid: Infinity, options: [] };
  const status = bytes("0002 6e6f");
  const ia = { iaid, renew: 1, rebind: 2, options: [[5, encodeIaAddress(address)], [13, status]] } as const;
  expect(encode({ type: 3, xid: 0x010203, options: [[3, encodeIa(ia)]] }).toHex()).toBe(
    "03010203" + "00030030" + "01020304" + "00000001" + "00000002" +
      "00050018" + "fd000000000000000000000000000001" + "00000010" + "ffffffff" +
      "000d0004" + "0002" + "6e6f",
  );
  expect(decodeIa(encodeIa(ia))).toEqual(ia as never);
  expect(decodeIaAddress(encodeIaAddress(address))).toEqual(address);
  expect(decodeStatus(status)).toEqual({ code: 2, text: bytes("6e6f") });
});

test.each([
  ["empty", ""],
  ["cut in their number", "070102"],
  ["of type 0", "00010203"],
  ["a relay's", "0c010203"],
  ["cut in an option's number", "07010203 00"],
  ["cut in an option's length", "07010203 000100"],
  ["cut in an option's value", "07010203 00010002 01"],
  ["with a byte after the last option", "07010203 00010001 01 00"],
])("bytes that are %s are no message", (_what, hex) => {
  expect(decode(bytes("07010203 00010002 0102"))).toBeDefined();
  expect(decode(bytes(hex))).toBeUndefined();
});

test("a message is no longer than a packet", () => {
  const longest: Message6 = { ...empty, options: [[1, new Uint8Array(LONGEST_BYTES - 8)]] };
  const longer: Message6 = { ...empty, options: [[1, new Uint8Array(LONGEST_BYTES - 7)]] };
  expect(decode(encode(longest))).toEqual(longest);
  expect(() => encode(longer)).toThrow("too long");
  expect(decode(bytes(`07010203 000105d5 ${"00".repeat(LONGEST_BYTES - 7)}`))).toBeUndefined();
  expect(decode(bytes(`07010203 000105d4 ${"00".repeat(LONGEST_BYTES - 8)}`))).toBeDefined();
});

test("options within options are as long as they say, or nothing is read", () => {
  const whole = encodeIa({ iaid, renew: 0, rebind: 0, options: [[13, bytes("0000")]] });
  const address = encodeIaAddress({
    address: ip6("fd00::1"),
    preferred: 1,
    valid: 2,
    options: [[13, bytes("0000")]],
  });
  for (let length = 0; length < whole.length; length++) {
    expect([length, decodeIa(whole.subarray(0, length)) !== undefined]).toEqual([length, length === 12]);
  }
  for (let length = 0; length < address.length; length++) {
    expect([length, decodeIaAddress(address.subarray(0, length)) !== undefined]).toEqual([length, length === 24]);
  }
  expect(decodeStatus(bytes("00"))).toBeUndefined();
});

test("a DUID has 3 to 130 bytes", () => {
  expect([2, 3, 130, 131].map((length) => isDuid(new Uint8Array(length)))).toEqual([false, true, true, false]);
});

test("a status has the name that RFC 8415 gives it", () => {
  expect([1, 2, 3, 4, 5, 9].map(statusName)).toEqual([
    "UnspecFail",
    "NoAddrsAvail",
    "NoBinding",
    "NotOnLink",
    "UseMulticast",
    "status 9",
  ]);
});

test("damaged messages are read or refused, and what is read stays what it is", () => {
  let state = 12345;
  const random = (most: number) => ((state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8) % most;
  const seed = encode(said(REPLY, empty, {
    status: 0,
    iaStatus: 0,
    addresses: [{}, { address: ip6("2001:db8::1"), options: [[13, bytes("0000")]] }],
    more: [
      [23, ip6("fd00::53")],
      [24, bytes("01 61 03 6f7267 00")],
      [56, bytes("0001 0010 fd000000000000000000000000000123")],
      [option.longestSolicitPause, bytes("00000e10")],
      [option.refresh, bytes("00000e10")],
      [option.preference, bytes("07")],
    ],
  }));
  let sound = 0, refused = 0, usable = 0, unusable = 0;
  for (let round = 0; round < 40_000; round++) {
    const wrong = seed.slice(0, random(10) === 0 ? random(seed.length) : seed.length);
    for (let change = random(4); change >= 0; change--) {
      if (wrong.length > 0) wrong[random(wrong.length)] = random(3) === 0 ? random(256) : random(40);
    }
    const message = decode(wrong);
    if (message === undefined) {
      refused++;
      continue;
    }
    sound++;
    const again = encode(message);
    if (again.toHex() !== wrong.toHex()) expect(again.toHex()).toBe(wrong.toHex());
    if (sound % 16 === 0) expect(decode(again)).toEqual(message);
    try {
      readReply(message, iaid);
      usable++;
    } catch (error) {
      if (!(error instanceof UnusableReply)) throw error;
      unusable++;
    }
  }
  for (const count of [sound, refused, usable, unusable]) expect(count).toBeGreaterThan(2_000);
}, 60_000);
