/** The options of queueing disciplines, classes and filters, as they are sent and as they are read. */
import { expect, test } from "bun:test";
import {
  bfifo,
  htb,
  htbClass,
  pfifo,
  readHtb,
  readHtbClass,
  readTbf,
  tbf,
} from "../../../../src/ffi/netlink/tc/shapers.ts";
import type { TcKind } from "../../../../src/ffi/netlink/tc/tc-object.ts";
import { ANY_PACKET, readU32, u32Class, u32Redirect } from "../../../../src/ffi/netlink/tc/u32.ts";
import { attributesBy, bodyOf, bytesBy } from "../fake-kernel.ts";

const MIB = 1 << 20, FAST = 5_000_000_000;
const ratespec = (rate: string) => "0000000000000000" + rate;

const bytesOf = ({ write }: TcKind) => bytesBy((writer) => write!(writer));
const bytesWith = (attributes: Record<number, string>) => bytesBy(bodyOf("", attributes));

test("tbf: a rate, in 64 bits where 32 do not hold it, a queue and a bucket", () => {
  const slow = tbf({ rate: MIB, limit: 5000, buffer: 3_125_000 });
  expect(slow.name).toBe("tbf");
  const fast = { rate: FAST, limit: 5, buffer: 6 };
  expect(attributesBy(tbf(fast).write!)).toEqual([
    `1: ${ratespec("ffffffff")}${ratespec("00000000")}05000000` + "06000000" + "00000000",
    "4: 00f2052a01000000",
  ]);
  expect(attributesBy(tbf({ ...fast, rate: 0xffffffff }).write!)).toHaveLength(1);
  expect(readTbf(bytesOf(slow))).toEqual({ rate: MIB, limit: 5000, buffer: 3_125_000 });
  expect(readTbf(bytesOf(tbf(fast)))).toEqual(fast);
  expect(readTbf(new Uint8Array())).toEqual({ rate: 0, limit: 0, buffer: 0 });
});

test("htb: the class for what no filter assigns", () => {
  expect(htb({ defaultClass: 0x30 }).name).toBe("htb");
  expect(attributesBy(htb({ defaultClass: 0x30 }).write!)).toEqual([
    // version, the rate's divisor for a quantum, the class; no debugging, no packets yet
    "2: 03000000" + "0a000000" + "30000000" + "00000000" + "00000000",
  ]);
  expect(readHtb(bytesOf(htb({ defaultClass: 0x30 })))).toEqual({ defaultClass: 0x30 });
  expect(readHtb(new Uint8Array())).toBeUndefined();
});

test("a class of htb: rate and ceiling are the same, and so are their buckets", () => {
  const slow = htbClass({ rate: MIB, buffer: 7 }), quantum = "400d0300", rest = "0000000000000000";
  expect(slow.name).toBe("htb");
  expect(attributesBy(slow.write!)).toHaveLength(1);
  expect(attributesBy(htbClass({ rate: FAST, buffer: 7 }).write!)).toEqual([
    `1: ${ratespec("ffffffff")}${ratespec("ffffffff")}0700000007000000${quantum}${rest}`,
    "6: 00f2052a01000000",
    "7: 00f2052a01000000",
  ]);
  for (const rate of [MIB, FAST]) {
    expect(readHtbClass(bytesOf(htbClass({ rate, buffer: 7 })))).toEqual({ rate, buffer: 7 });
  }
  expect(readHtbClass(new Uint8Array())).toEqual({ rate: 0, buffer: 0 });
});

test("queues of a length, in bytes and in packets", () => {
  expect([bfifo(5000).name, pfifo(100).name]).toEqual(["bfifo", "pfifo"]);
  expect([bytesOf(bfifo(5000)).toHex(), bytesOf(pfifo(100)).toHex()]).toEqual(["88130000", "64000000"]);
});

const CLASS = 0x10030;
const keys = [{ offset: 12, value: 0x0a010200, mask: 0xffffff00 }, { offset: -4, value: 1, mask: 2 }];
const selector = "01000200" + "000000000000000000000000" + "ffffff000a0102000c00000000000000" +
  "0000000200000001fcffffff00000000";

test("u32: which packets go to a class, or to another link", () => {
  expect(u32Class(keys, CLASS).name).toBe("u32");
  expect(attributesBy(u32Class(keys, CLASS).write!)).toEqual(["1: 30000100", `5: ${selector}`]);
  const any = "01000100" + "00".repeat(12 + 16);
  expect(u32Redirect(ANY_PACKET, CLASS, 9).name).toBe("u32");
  expect(attributesBy(u32Redirect(ANY_PACKET, CLASS, 9).write!)).toEqual([
    "1: 30000100",
    `5: ${any}`,
    "7.1.1: 6d697272656400", // mirred
    // struct tc_mirred: TC_ACT_STOLEN, TCA_EGRESS_REDIR, the link
    "7.1.2.2: 0000000000000000" + "04000000" + "0000000000000000" + "01000000" + "09000000",
  ]);
  expect(readU32(bytesOf(u32Class(keys, CLASS)))).toEqual({ keys, classId: CLASS, redirects: [] });
  expect(readU32(bytesOf(u32Redirect(ANY_PACKET, CLASS, 9)))).toEqual({
    keys: [...ANY_PACKET],
    classId: CLASS,
    redirects: [9],
  });
});

test("u32: a table of filters is none, a filter may have no class, and only mirred's redirections count", () => {
  expect(readU32(bytesWith({ 1: "30000100" }))).toBeUndefined();
  expect(readU32(bytesWith({ 5: selector }))).toEqual({ keys, classId: 0, redirects: [] });
  // What is left over is no key.
  expect(readU32(bytesWith({ 5: `${selector}00000000` }))!.keys).toHaveLength(2);

  const attribute = (type: number, value: string) => {
    const length = 4 + value.length / 2, padding = "00".repeat((4 - (length % 4)) % 4);
    return `${length.toString(16).padStart(2, "0")}00${type.toString(16).padStart(2, "0")}00${value}${padding}`;
  };
  const action = (number: number, kind: string, mirred: string) =>
    attribute(number, attribute(1, `${Buffer.from(kind).toString("hex")}00`) + attribute(2, attribute(2, mirred)));
  const redirect = (what: string, link: string) => `${"00".repeat(20)}${what}${link}`;
  const redirects = (...actions: string[]) => readU32(bytesWith({ 5: selector, 7: actions.join("") }))!.redirects;
  expect(redirects(
    action(1, "mirred", redirect("01000000", "09000000")),
    action(2, "mirred", redirect("01000000", "00000000")), // a link that is gone
    action(3, "mirred", redirect("02000000", "08000000")), // TCA_EGRESS_MIRROR
    action(4, "gact", redirect("01000000", "07000000")),
    action(5, "mirred", redirect("01000000", "060000")), // too short for one
  )).toEqual([9, 0]);
  expect(redirects(attribute(1, attribute(1, `${Buffer.from("mirred").toString("hex")}00`)))).toEqual([]);
});
