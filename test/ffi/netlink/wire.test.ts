/** Netlink messages as bytes: padding, growing buffers, and reading that stays within whatever bytes arrive. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  eachAttribute,
  eachMessage,
  MalformedMessage,
  NLM_F_REQUEST,
  Writer,
} from "../../../src/ffi/netlink/wire.ts";

test("a message is its header, its fields and its attributes, each padded to four bytes", () => {
  const writer = new Writer();
  writer.start(16, NLM_F_REQUEST, 7).u32(0x01020304);
  writer.attribute(3, () => void writer.text("eth0"));
  writer.nest(18, () => void writer.attribute(1, () => void writer.u16be(0x0a0b)));
  writer.finish();
  expect(Buffer.from(writer.bytes.subarray(0, writer.length)).toString("hex")).toBe([
    "2c000000", // length 44
    "10000100", // type 16, NLM_F_REQUEST
    "07000000", // sequence
    "00000000", // port
    "04030201", // the field, host order
    "09000300", // attribute 3, 9 bytes
    "65746830", // "eth0"
    "00000000", // its NUL, and padding
    "0c001280", // attribute 18, nested
    "06000100", // attribute 1 inside, 6 bytes
    "0a0b0000", // network order, and padding
  ].join(""));
});

test("the buffer grows, and what was written stays", () => {
  const writer = new Writer();
  writer.start(1, 0, 1);
  for (let index = 0; index < 5000; index++) writer.attribute(1, () => void writer.u32(index));
  writer.raw(new Uint8Array(100_000).fill(7));
  writer.finish();
  const view = new DataView(writer.bytes.buffer);
  expect(writer.length).toBe(16 + 40_000 + 100_000);
  expect(view.getUint32(0, true)).toBe(writer.length);
  expect([view.getUint32(20, true), view.getUint32(16 + 8 * 4999 + 4, true)]).toEqual([0, 4999]);
  expect([writer.bytes[40_016], writer.bytes[140_015]]).toEqual([7, 7]);
});

test("a reused buffer leaves nothing of the last message in the padding", () => {
  const writer = new Writer();
  writer.start(1, 0, 1).raw(new Uint8Array(64).fill(0xff));
  writer.reset().start(1, 0, 1).attribute(1, () => void writer.u8(5));
  expect([...writer.bytes.subarray(16, 24)]).toEqual([5, 0, 1, 0, 5, 0, 0, 0]);
});

test("whatever bytes come, reading ends, within them, or says that they are malformed", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    for (const read of [eachMessage, eachAttribute] as ((b: Uint8Array, visit: (...a: never[]) => void) => void)[]) {
      let visits = 0;
      try {
        read(bytes, () => void visits++);
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedMessage);
      }
      expect(visits).toBeLessThanOrEqual(bytes.length / 4);
    }
  }));
});

test.each([
  ["longer than what there is", [9, 0, 1, 0, 1, 2, 3, 4]],
  ["shorter than its own header", [3, 0, 1, 0]],
])("an attribute %s is malformed", (_, bytes) => {
  expect(() => eachAttribute(new Uint8Array(bytes), () => {})).toThrow(MalformedMessage);
});

test("attributes read back as they were written", () => {
  const attribute = fc.tuple(fc.integer({ min: 0, max: 0x3fff }), fc.uint8Array({ maxLength: 40 }));
  fc.assert(fc.property(fc.array(attribute), (attributes) => {
    const writer = new Writer();
    for (const [type, payload] of attributes) writer.attribute(type, () => void writer.raw(payload));
    const read: [number, Uint8Array][] = [];
    eachAttribute(
      writer.bytes.subarray(0, writer.length),
      (type, payload) => void read.push([type, payload.slice()]),
    );
    expect(read).toEqual(attributes);
  }));
});
