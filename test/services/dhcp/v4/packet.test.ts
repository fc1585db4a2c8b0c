/** A DHCP message in its IPv4 and UDP headers. dhcp's tests with servers show that kernels agree with it. */
import { expect, test } from "bun:test";
import { CLIENT_PORT, SERVER_PORT, unwrap, wrap } from "../../../../src/services/dhcp/v4/message/packet.ts";

const nobody = new Uint8Array(4), everybody = new Uint8Array(4).fill(255);

/** The packet as a server sends it: the ports the other way round, which leaves the sums as they are. */
function answered(message: Uint8Array): Uint8Array {
  const packet = wrap(Uint8Array.of(192, 168, 77, 1), everybody, message), view = new DataView(packet.buffer);
  view.setUint16(20, SERVER_PORT);
  view.setUint16(22, CLIENT_PORT);
  return packet;
}

test("the headers are those of a packet that a kernel has made", () => {
  const packet = wrap(nobody, everybody, new TextEncoder().encode("abc"));
  expect(packet.toHex()).toBe(
    "4500001f000000004011" + "7acf" + "00000000ffffffff" + "00440043000b" + "3aef" + "616263",
  );
});

test.each([0, 1, 2, 300, 1472])("a message of %i bytes comes out as it went in", (length) => {
  const message = new Uint8Array(length).map((_, index) => index * 7);
  expect(unwrap(answered(message), true)).toEqual(message);
});

test("what is malformed or not for a client is no message", () => {
  const sound = answered(new Uint8Array(300).fill(1));
  const changed = (at: number, value: number) => {
    const packet = sound.slice();
    packet[at] = value;
    return packet;
  };
  expect(unwrap(sound, true)).toBeDefined();
  for (const at of [0, 2, 3, 6, 7, 8, 9, 10, 12, 16, 20, 21, 22, 23, 24, 25, 26, 40]) {
    expect<[number, unknown]>([at, unwrap(changed(at, sound[at]! ^ 0x15), true)]).toEqual([at, undefined]);
  }
  for (let length = 0; length < sound.length; length++) expect(unwrap(sound.slice(0, length), true)).toBeUndefined();
  expect(unwrap(wrap(nobody, everybody, new Uint8Array(300)), true)).toBeUndefined();
});

test("a sum that a card was to write is not looked at, and 0 means no sum", () => {
  const packet = answered(new Uint8Array(300).fill(1));
  packet[40] = 9;
  expect(unwrap(packet, true)).toBeUndefined();
  expect(unwrap(packet, false)).toBeDefined();
  packet.fill(0, 26, 28);
  expect(unwrap(packet, true)).toBeDefined();
});

test("what follows the packet in its frame is not of it", () => {
  const packet = answered(Uint8Array.of(1, 2, 3)), padded = new Uint8Array(60);
  padded.set(packet);
  expect(unwrap(padded, true)).toEqual(Uint8Array.of(1, 2, 3));
});

/** A packet with one byte changed, and the sum of its header right. */
function summed(packet: Uint8Array, at: number, byte: number): Uint8Array {
  const changed = packet.slice(), view = new DataView(changed.buffer);
  changed[at] = byte;
  view.setUint16(10, 0);
  let sum = 0;
  for (let from = 0; from < Math.min((changed[0]! & 0x0f) * 4, changed.length - 1); from += 2) {
    sum += view.getUint16(from);
  }
  view.setUint16(10, ~((sum & 0xffff) + (sum >>> 16)) & 0xffff);
  return changed;
}

test.each([
  ["another version", 0, 0x55],
  ["a header that is too short", 0, 0x44],
  ["a header that is longer than the packet", 0, 0x4f],
  ["TCP", 9, 6],
  ["a packet that is longer than it is", 3, 0x60],
  ["a packet that ends in UDP's header", 3, 27],
  ["a part that comes before others", 6, 0x20],
  ["a part that comes after others", 7, 1],
  ["UDP that is shorter than its header", 25, 7],
  ["UDP that is longer than the packet", 25, 12],
  ["another source port", 21, 68],
  ["another destination port", 23, 67],
])("%s is no message, though its sum is right", (_what, at, byte) => {
  const sound = answered(Uint8Array.of(1, 2, 3));
  expect(unwrap(summed(sound, 8, 9), false)).toBeDefined();
  expect(unwrap(summed(sound, at, byte), false)).toBeUndefined();
});

test("the sum of UDP is over both addresses", () => {
  const sound = answered(Uint8Array.of(1, 2, 3));
  for (let at = 12; at < 20; at++) expect(unwrap(summed(sound, at, sound[at]! ^ 1), true)).toBeUndefined();
  expect(unwrap(summed(sound, 12, 193), false)).toBeDefined();
});
