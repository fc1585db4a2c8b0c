/** Values on the message bus, byte by byte, there and back, and what is malformed. */
import { expect, test } from "bun:test";
import { bare, completeTypes, Decoder, Encoder, type Value } from "../../../src/interop/firewalld/marshal.ts";

const encoded = (signature: string, ...values: Value[]) => {
  const encoder = new Encoder();
  completeTypes(signature).forEach((type, index) => encoder.write(type, values[index]!));
  return encoder.done();
};

test("texts, numbers and booleans are aligned to their sizes", () => {
  expect(encoded("ysb", 7, "ab", true).toHex()).toBe("07000000" + "02000000" + "616200" + "00" + "01000000");
  expect(encoded("gu", "as", 0x01020304).toHex()).toBe("02617300" + "04030201");
});

test("one byte before, every type is aligned to its own size", () => {
  const after = (type: string, value: Value) => encoded(`y${type}`, 1, value).toHex();
  expect(after("y", 2)).toBe("0102");
  expect(after("g", "s")).toBe("01" + "017300");
  expect(after("v", { signature: "y", value: 2 })).toBe("01" + "017900" + "02");
  expect(after("o", "/")).toBe("01000000" + "01000000" + "2f00");
  expect(after("ay", [2, 3])).toBe("01000000" + "02000000" + "0203");
  expect(after("i", -1)).toBe("01000000" + "ffffffff");
  expect(after("(y)", [2])).toBe("0100000000000000" + "02");
  expect(after("a{yy}", [[2, 3]])).toBe("01000000" + "02000000" + "0203");
});

test("a list has its length without the padding before its first entry", () => {
  expect(encoded("a(ss)", []).toHex()).toBe("00000000" + "00000000");
  expect(encoded("a(ss)", [["a", "b"]]).toHex())
    .toBe("0e000000" + "00000000" + "01000000" + "6100" + "0000" + "01000000" + "6200");
});

test("a variant brings its type", () => {
  expect(encoded("v", { signature: "b", value: true }).toHex()).toBe("016200" + "00" + "01000000");
});

test("the same there and back, however deep and large", () => {
  const forwards = Array.from({ length: 2000 }, (_, at) => [`${at}`, "tcp", "80", "fd00::1"]);
  const settings: Value = [
    ["forward_ports", { signature: "a(ssss)", value: forwards }],
    ["rich_rules", { signature: "as", value: ['rule family="ipv4"', "ö"] }],
    ["masquerade", { signature: "b", value: false }],
    ["none", { signature: "(a(ss)s)", value: [[], "and a text after them"] }],
    ["long", { signature: "s", value: "x".repeat(0x10203) }],
    ["nested", { signature: "v", value: { signature: "a{sv}", value: [["k", { signature: "u", value: 4 }]] } }],
  ];
  const bytes = encoded("sa{sv}", "policy", settings), decoder = new Decoder(bytes, true);
  expect(completeTypes("sa{sv}").map((type) => decoder.read(type))).toEqual(["policy", settings]);
  expect(bare((settings[0] as Value[])[1])).toEqual(forwards);
});

test("numbers of every type, in the other byte order too", () => {
  const hex = "ff" + "00" + "fffe" + "8000" + "0000" + "fffffffe" + "00000000" + "0000000100000000" +
    "3ff8000000000000" + "01" + "00000000000000" + "fffffffffffffffe" + "8000000000000000" + "00000000";
  const decoder = new Decoder(Uint8Array.fromHex(hex), false);
  expect([..."ynqitdyxtb"].map((type) => decoder.read(type)))
    .toEqual([255, -2, 32768, -2, 2 ** 32, 1.5, 1, -2, 2 ** 63, false]);
});

test("a signature is divided into its types, up to 255 letters and 32 levels", () => {
  expect(completeTypes("a(sa{sv})(i)s")).toEqual(["a(sa{sv})", "(i)", "s"]);
  expect(completeTypes("s".repeat(255))).toHaveLength(255);
  for (const [open, close] of [["a", ""], ["(", ")"]] as const) {
    const nested = (levels: number) => `${open.repeat(levels)}s${close.repeat(levels)}`;
    expect(completeTypes(nested(32))).toEqual([nested(32)]);
    expect(() => completeTypes(nested(33))).toThrow("D-Bus: a value of type");
  }
});

test("a value has up to 32 levels", () => {
  const inLevels = (levels: number, value: Value, around: (inner: Value) => Value): Value =>
    levels === 0 ? value : around(inLevels(levels - 1, value, around));
  const lists = (levels: number) => ["a".repeat(levels) + "y", inLevels(levels, 7, (inner) => [inner])] as const;
  const structures = (levels: number) => [`${"(".repeat(levels)}y${")".repeat(levels)}`, lists(levels)[1]] as const;
  const variants = (levels: number) => {
    const value = inLevels(levels - 1, { signature: "y", value: 7 }, (inner) => ({ signature: "v", value: inner }));
    return ["v", value] as const;
  };
  for (const shape of [lists, structures, variants]) {
    const read = (levels: number) => {
      const [type, value] = shape(levels);
      return new Decoder(new Encoder().write(type, value).done(), true).read(type);
    };
    expect(read(32)).toEqual(shape(32)[1]);
    expect(() => read(33)).toThrow("D-Bus: a value of type");
  }
});

test("what is malformed is refused, and ends", () => {
  for (const signature of ["a", "(s", "a{s", "s)", "z", "a".repeat(40) + "s", "s".repeat(256), "((((".repeat(20)]) {
    expect(() => completeTypes(signature)).toThrow("D-Bus: a value of type");
  }
  const tooLong = Uint8Array.fromHex("ffffff7f" + "00000000");
  for (const type of ["as", "au", "a(ss)"]) expect(() => new Decoder(tooLong, true).read(type)).toThrow();
  const variants = Uint8Array.fromHex("017600".repeat(64));
  expect(() => new Decoder(variants, true).read("v")).toThrow("D-Bus: a value of type");
  expect(() => new Decoder(encoded("g", "ss"), true).read("v")).toThrow("D-Bus: a value of type");
});
