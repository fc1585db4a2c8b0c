/** Attribute tables: what a table encodes it decodes, unknown attributes are skipped, short ones are refused. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  attributeAt,
  attrTable,
  binary,
  flag,
  nest,
  nestedList,
  s32,
  text,
  u16,
  u32,
  u32be,
  u8,
} from "../../../src/ffi/netlink/attrs.ts";
import { MalformedMessage, type Writer } from "../../../src/ffi/netlink/wire.ts";
import { bodyOf, bytesBy } from "./fake-kernel.ts";

const inner = attrTable("INNER", { port: u16(1), mark: u32be(2) });
const table = attrTable("OUTER", {
  name: text(1),
  mtu: u32(2),
  delta: s32(3),
  small: u8(4),
  raw: binary(5),
  on: flag(6),
  inside: nest(7, inner),
  many: nestedList(8, 1, inner),
});

const encoded = (values: Parameters<typeof table.encode>[1]) => bytesBy((writer) => table.encode(writer, values));

const u32s = fc.integer({ min: 0, max: 0xffffffff });
const innerValues = fc.record({ port: fc.integer({ min: 0, max: 0xffff }), mark: u32s }, { requiredKeys: [] });

test("what a table encodes it decodes, and fields left out stay out", () => {
  const values = fc.record({
    name: fc.string().filter((value) => !value.includes("\0")),
    mtu: u32s,
    delta: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    small: fc.integer({ min: 0, max: 255 }),
    raw: fc.uint8Array({ maxLength: 16 }),
    on: fc.constant(true as const),
    inside: innerValues,
    many: fc.array(innerValues, { maxLength: 4 }),
  }, { requiredKeys: [] });
  fc.assert(fc.property(values, (given) => expect(table.decode(encoded(given))).toEqual(given)));
});

test("attributes without a row are skipped", () => {
  const withUnknown = (writer: Writer) =>
    void writer.attribute(99, () => void writer.u32(1)).attribute(2, () => void writer.u32(1500));
  expect(table.decode(bytesBy(withUnknown))).toEqual({ mtu: 1500 });
});

test("an attribute shorter than its type is malformed, not zero", () => {
  expect(() => table.decode(bytesBy(bodyOf("", { 2: "0100" })))).toThrow(MalformedMessage);
});

test.each([
  ["longer than what there is", [9, 0, 1, 0, 1, 2, 3, 4]],
  ["shorter than its own header", [3, 0, 1, 0]],
  ["longer than what there is, behind another", [4, 0, 6, 0, 5, 0, 1, 0]],
])("an attribute %s is malformed", (_, bytes) => {
  expect(() => table.decode(new Uint8Array(bytes))).toThrow(MalformedMessage);
});

test("attributeAt() names what the kernel points at, also inside a nest", () => {
  const bytes = encoded({ name: "eth0", mtu: 9, inside: { port: 1, mark: 2 } });
  const at = (offset: number) => attributeAt(table, bytes, offset);
  expect([at(0), at(12), at(20), at(24), at(32), at(400)]).toEqual([
    "name",
    "mtu",
    "inside",
    "inside.port",
    "inside.mark",
    undefined,
  ]);
});
