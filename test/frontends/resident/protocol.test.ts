/** What launcher and resident write to each other, byte by byte, and that both sides say so (src/native/launch.h). */
import { expect, test } from "bun:test";
import {
  DECLINED,
  DONE_IN_FILES,
  doneMessage,
  plainMessage,
  readRequest,
} from "../../../src/frontends/resident/protocol.ts";
import * as protocol from "../../../src/frontends/resident/protocol.ts";

const BUILD = Array.from({ length: 20 }, (_, index) => 0xa0 + index);
const numbers = (...values: number[]) => [...new Uint8Array(Uint32Array.from(values).buffer)];
const texts = (...all: string[]) => [...new TextEncoder().encode(all.map((one) => `${one}\0`).join(""))];
const PROTOCOL = 0x31424350;

test("a request: numbers, build, directory, arguments, environment", () => {
  const head = [...numbers(PROTOCOL, 2, 3), ...BUILD];
  const message = Uint8Array.from([...head, ...texts("/tmp/é", "/opt/bridge", "two words", "A=1", "", "A=2")]);
  expect(readRequest(message)).toEqual({
    build: Uint8Array.from(BUILD),
    workingDirectory: "/tmp/é",
    argv: ["/opt/bridge", "two words"],
    environment: Uint8Array.from(texts("A=1", "", "A=2")),
  });
  // It is received into memory that the next message overwrites, in the middle of which it may stand.
  const room = Uint8Array.from([1, ...message, 1]), read = readRequest(room.subarray(1, -1));
  room.fill(0);
  expect(read).toEqual(readRequest(message)!);
});

test("an argument and a variable may be missing, and any text empty", () => {
  const message = Uint8Array.from([...numbers(PROTOCOL, 1, 0), ...BUILD, ...texts("", "")]);
  expect(readRequest(message)).toMatchObject({ workingDirectory: "", argv: [""], environment: new Uint8Array() });
});

test.each<[what: string, bytes: number[]]>([
  ["nothing", []],
  ["too short for its head", [...numbers(PROTOCOL, 1, 0), ...BUILD.slice(1)]],
  ["nothing but a head", [...numbers(PROTOCOL, 1, 0), ...BUILD]],
  ["another protocol", [...numbers(PROTOCOL + 1, 1, 1), ...BUILD, ...texts("/", "a", "A=1")]],
  ["no argument", [...numbers(PROTOCOL, 0, 1), ...BUILD, ...texts("/", "A=1")]],
  ["a text more than it says", [...numbers(PROTOCOL, 1, 1), ...BUILD, ...texts("/", "a", "A=1", "B=1")]],
  ["a text less than it says", [...numbers(PROTOCOL, 1, 1), ...BUILD, ...texts("/", "a")]],
  ["more arguments than texts", [...numbers(PROTOCOL, 3, 1), ...BUILD, ...texts("/", "a", "A=1")]],
  ["a last text without its end", [...numbers(PROTOCOL, 1, 1), ...BUILD, ...texts("/", "a", "A=1"), 65]],
])("no request: %s", (_what, bytes) => {
  expect(readRequest(Uint8Array.from(bytes))).toBeUndefined();
});

test("answers: what it is, the status, the lengths, the outputs", () => {
  expect([...plainMessage(DECLINED)]).toEqual(numbers(2, 0, 0, 0));
  expect([...plainMessage(DONE_IN_FILES, 0x1234)]).toEqual(numbers(4, 0x1234, 0, 0));
  const [stdout, stderr] = [[1, 2, 3], [4, 5]].map((bytes) => Uint8Array.from(bytes)) as [Uint8Array, Uint8Array];
  expect([...doneMessage(7, stdout, stderr)!]).toEqual([...numbers(3, 7, 3, 2), 1, 2, 3, 4, 5]);
});

test("outputs go in the message as far as it has room for both", () => {
  const most = protocol.MESSAGE_BYTES - 16 - 5, stderr = new Uint8Array(5).fill(9);
  expect(doneMessage(0, new Uint8Array(most), stderr)?.length).toBe(protocol.MESSAGE_BYTES);
  expect(doneMessage(0, new Uint8Array(most + 1), stderr)).toBeUndefined();
});
