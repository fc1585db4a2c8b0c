/** Values on the message bus, byte by byte, there and back, and what is malformed. */
import { expect, test } from "bun:test";
import { bare, completeTypes, Decoder, Encoder, type Value } from "../../src/firewalld/marshal.ts";

const encoded = (signature: string, ...values: Value[]) => {
  const encoder = new Encoder();
  completeTypes(signature).forEach((type, index) => encoder.write(type, values[index]!));
  return encoder.done();
};

test("texts, numbers and booleans are aligned to their sizes", () => {
  expect(encoded("ysb", 7, "ab", true).toHex()).toBe("07000000" + "02000000" + "616200" + "00" + "01000000");
  expect(encoded("gu", "as", 0x01020304).toHex()).toBe("02617300" + "04030201");
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
    ["nested", { signature: "v", value: { signature: "a{sv}", value: [["k", { signature: "u", value: 4 }]] } }],
  ];
  const bytes = encoded("sa{sv}", "policy", settings), decoder = new Decoder(bytes, true);
  expect(completeTypes("sa{sv}").map((type) => decoder.read(type))).toEqual(["policy", settings]);
  expect(bare((settings[0] as Value[])[1])).toEqual(forwards);
});

test("numbers of every type, in the other byte order too", () => {
  const hex = "ff" + "00" + "fffe" + "8000" + "0000" + "fffffffe" + "00000000" + "0000000100000000" +
    "3ff8000000000000";
  const decoder = new Decoder(Uint8Array.fromHex(hex), false);
  expect(["y", "n", "q", "i", "t", "d"].map((type) => decoder.read(type))).toEqual([
    255,
    -2,
    32768,
    -2,
    2 ** 32,
    1.5,
  ]);
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
