/** Addresses on the wire: what the kernel is asked for, what its answers mean, and which refusals are no failure. */
import { expect, test } from "bun:test";
import { EADDRNOTAVAIL, EEXIST, EINVAL } from "../../../../src/ffi/errno.ts";
import { addAddress, delAddress, lendAddress, listAddresses } from "../../../../src/ffi/netlink/route/address.ts";
import { RTM_DELADDR, RTM_NEWADDR } from "../../../../src/ffi/netlink/uapi/rtnetlink.ts";
import { formatPrefix, parsePrefix } from "../../../../src/net/address.ts";
import { answering, bodyOf, refusing, sentAs, sentBy, socketTo } from "../fake-kernel.ts";

const HEADER = 8; // struct ifaddrmsg
const v4 = parsePrefix("10.1.2.3/24")!, v6 = parsePrefix("fd00::2/64")!;
const hex6 = "fd000000000000000000000000000002";

const sent = (work: Parameters<typeof sentBy>[0]) => sentBy(work, HEADER);

test("an address is added with its broadcast address, where its network has one", () => {
  expect(sent((socket) => addAddress(socket, 7, v4))).toEqual([
    "type 20, flags 0x605", // RTM_NEWADDR: a request with an ACK, create, exclusively
    "02180000 07000000",
    "2: 0a010203",
    "1: 0a010203",
    "4: 0a0102ff",
  ]);
  const broadcast = (text: string) => sent((socket) => addAddress(socket, 7, parsePrefix(text)!)).slice(4);
  expect(broadcast("10.1.2.2/30")).toEqual(["4: 0a010203"]);
  expect(broadcast("10.1.2.2/31")).toEqual([]);
  expect(broadcast("fd00::2/30")).toEqual([]);
});

test("only for IPv6 does the kernel look for duplicates, unless that is to be skipped", () => {
  const header = (prefix: typeof v4, skipDad: boolean) =>
    sent((socket) => addAddress(socket, 7, prefix, { skipDad }))[1];
  expect(header(v6, false)).toBe("0a400000 07000000");
  expect(header(v6, true)).toBe("0a400200 07000000");
  expect(header(v4, true)).toBe("02180000 07000000");
});

test("a lent address has its lifetimes, in whole seconds, and replaces what is there", () => {
  const lifetime = { preferred: 59.9, valid: Infinity };
  expect(sent((socket) => lendAddress(socket, 7, v6, lifetime))).toEqual([
    "type 20, flags 0x505", // create or replace
    "0a400200 07000000", // nobody else has it: no look for duplicates
    `2: ${hex6}`,
    `1: ${hex6}`,
    "6: 3b000000ffffffff0000000000000000",
  ]);
  const lent = (text: string, broadcast?: Uint8Array) =>
    sent((socket) => lendAddress(socket, 7, parsePrefix(text)!, lifetime, broadcast)).slice(1, -1);
  expect(lent("10.1.2.3/24")).toEqual(["02180000 07000000", "2: 0a010203", "1: 0a010203", "4: 0a0102ff"]);
  expect(lent("10.1.2.3/24", Uint8Array.of(10, 1, 2, 0)).at(-1)).toBe("4: 0a010200");
  expect(lent("10.1.2.2/30").at(-1)).toBe("4: 0a010203");
  expect(lent("10.1.2.3/31").at(-1)).toBe("1: 0a010203");
});

test("an address is deleted from its link", () => {
  expect(sent((socket) => delAddress(socket, 7, v4))).toEqual([
    "type 21, flags 0x5",
    "02180000 07000000",
    "2: 0a010203",
    "1: 0a010203",
  ]);
});

test("what is there already, or not there any more, is no failure; anything else is", () => {
  expect(addAddress(socketTo(answering(0)), 7, v4)).toBe("added");
  expect(addAddress(socketTo(refusing(EEXIST)), 7, v4)).toBe("present");
  expect(delAddress(socketTo(answering(0)), 7, v4)).toBe("deleted");
  expect(delAddress(socketTo(refusing(EADDRNOTAVAIL)), 7, v4)).toBe("absent");
  const invalid = socketTo(refusing(EINVAL));
  expect(() => addAddress(invalid, 7, v4)).toThrow("RTM_NEWADDR 10.1.2.3/24: invalid argument");
  expect(() => delAddress(invalid, 7, v4)).toThrow("RTM_DELADDR 10.1.2.3/24: invalid argument");
  expect(() => lendAddress(invalid, 7, v4, { preferred: 1, valid: 1 })).toThrow("RTM_NEWADDR 10.1.2.3/24: invalid");
});

const answers = [
  bodyOf("0a40c000 07000000", { 1: hex6, 6: "0a00000014000000" + "0000000000000000" }),
  // A peer's address is the other end's: IFA_LOCAL is the own one. Flags of 32 bits count instead of those of 8.
  bodyOf("02180000 07000000", { 2: "0a010203", 1: "0a010209", 8: "48000000" }),
  bodyOf("02180000 08000000", { 2: "0a010204" }),
  bodyOf("02180000 07000000"),
];

test("addresses are listed with their state and how long they last, of one link or of all", () => {
  const kernel = answering(RTM_NEWADDR, ...answers);
  const show = (linkIndex: number, from = kernel) =>
    listAddresses(socketTo(from), linkIndex).map((
      { linkIndex, tentative, duplicate, lifetime, ...prefix },
    ) => [linkIndex, formatPrefix(prefix), tentative, duplicate, lifetime.preferred, lifetime.valid]);
  const ofSeven = [
    [7, "fd00::2/64", true, false, 10, 20],
    [7, "10.1.2.3/24", true, true, Infinity, Infinity],
  ];
  expect(show(7)).toEqual(ofSeven);
  expect(sentAs(kernel, HEADER)).toEqual(["type 22, flags 0x301", "00000000 07000000"]);
  expect(show(0)).toEqual([...ofSeven, [8, "10.1.2.4/24", false, false, Infinity, Infinity]]);
  expect(show(7, answering(RTM_DELADDR, ...answers))).toEqual([]);
});
