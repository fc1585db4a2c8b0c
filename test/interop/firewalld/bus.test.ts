/** Calls on the message bus, byte by byte: what is sent, whose answers are taken, and what is no answer. */
import { afterAll, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Bus,
  DbusError,
  nameHasOwner,
  openSystemBus,
  systemBusAddress,
} from "../../../src/interop/firewalld/bus.ts";
import { withFirewalld } from "../../../src/interop/firewalld/client.ts";
import { withOwnPatience } from "../../../src/process/patience.ts";
import { outcomeOf } from "../../support/outcome.ts";
import type { Script } from "./scripted-bus.ts";

const directory = mkdtempSync(join(tmpdir(), "patchbay-bus-"));
afterAll(() => rmSync(directory, { recursive: true }));

const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const u32 = (value: number) => String.fromCharCode(value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >>> 24);
const OK = "OK 0123456789abcdef\r\n";

const padded = (text: string) => text.padEnd(Math.ceil(text.length / 8) * 8, "\0");
const text = (value: string) => `${u32(value.length)}${value}\0`;

/** Fields: the call that is answered, the types of the answer's values, the name of an error. */
const replyTo = (serial: number) => "\x05\x01u\0" + u32(serial);
const types = (signature: string) => `\x08\x01g\0${String.fromCharCode(signature.length)}${signature}\0`;
const errorName = "\x04\x01s\0" + text("a.b");

function message(type: number, fields: string[], body = ""): string {
  const list = fields.map((field, index) => index === fields.length - 1 ? field : padded(field)).join("");
  return `l${String.fromCharCode(type)}\0\x01${u32(body.length)}${u32(9)}${u32(list.length)}${padded(list)}${body}`;
}

const METHOD_RETURN = 2, ERROR = 3, SIGNAL = 4;
const hello = message(METHOD_RETURN, [replyTo(1), types("s")], text(":1.7"));
const question = { destination: "a.b", path: "/c", interface: "d.e", member: "F" };

let buses = 0;

/** Returns what `work` returns, or the error, and what the bus has heard. */
async function withBus(
  says: string,
  work: (bus: Bus | undefined) => unknown,
  { isDone = false, patienceMs, address = (path) => `unix:path=${path}` }: {
    isDone?: boolean;
    patienceMs?: number;
    address?: (path: string) => string;
  } = {},
): Promise<{ outcome: unknown; heard: string }> {
  const path = join(directory, String(++buses));
  const bus = new Worker(new URL("./scripted-bus.ts", import.meta.url));
  const next = () => new Promise<unknown>((resolve) => bus.onmessage = ({ data }) => resolve(data));
  const ready = next(), script: Script = { path, says: latin1(says), isDone };
  bus.postMessage(script);
  await ready;
  const heard = next();
  process.env.DBUS_SYSTEM_BUS_ADDRESS = address(path);
  try {
    const outcome = outcomeOf(() => {
      const opened = openSystemBus(patienceMs);
      try {
        return work(opened);
      } finally {
        opened?.close();
      }
    });
    return { outcome, heard: String.fromCharCode(...await heard as Uint8Array) };
  } finally {
    delete process.env.DBUS_SYSTEM_BUS_ADDRESS;
    bus.terminate();
  }
}

test("what is sent: who we are, the greeting, and a call with its arguments", async () => {
  const says = OK + hello + message(METHOD_RETURN, [replyTo(2)]);
  const { heard } = await withBus(says, (bus) => bus!.call(question, ["x", true], "sb"));
  const uid = Buffer.from(String(process.geteuid!())).toString("hex");
  expect(heard).toBe(
    `\0AUTH EXTERNAL ${uid}\r\nBEGIN\r\n` +
      "l\x01\0\x01" + u32(0) + u32(1) + u32(0x6d) +
      "\x01\x01o\0" + u32(21) + "/org/freedesktop/DBus\0" + "\0\0" +
      "\x02\x01s\0" + u32(20) + "org.freedesktop.DBus\0" + "\0\0\0" +
      "\x03\x01s\0" + u32(5) + "Hello\0" + "\0\0" +
      "\x06\x01s\0" + u32(20) + "org.freedesktop.DBus\0" + "\0\0\0" +
      "l\x01\0\x01" + u32(12) + u32(2) + u32(0x48) +
      "\x01\x01o\0" + u32(2) + "/c\0" + "\0\0\0\0\0" +
      "\x02\x01s\0" + u32(3) + "d.e\0" + "\0\0\0\0" +
      "\x03\x01s\0" + u32(1) + "F\0" + "\0\0\0\0\0\0" +
      "\x06\x01s\0" + u32(3) + "a.b\0" + "\0\0\0\0" +
      "\x08\x01g\0\x02sb\0" +
      u32(1) + "x\0" + "\0\0" + u32(1),
  );
});

test("arguments are texts unless a signature says otherwise, and a call may have none", async () => {
  const says = OK + hello + message(METHOD_RETURN, [replyTo(2)]) + message(METHOD_RETURN, [replyTo(3)]);
  const { heard } = await withBus(says, (bus) => [bus!.call(question, ["x", "y"]), bus!.call(question)]);
  const without = "l\x01\0\x01" + u32(0) + u32(3) + u32(0x3c);
  expect(heard).toContain(types("ss") + text("x") + "\0\0" + text("y") + without);
});

test("an answer is the first value of the message that returns the call, whatever comes before", async () => {
  const long = "x".repeat(200_000);
  const bigEndian = "B\x02\0\x01" + "\0\0\0\x04" + "\0\0\0\x09" + "\0\0\0\x0f" + "\x05\x01u\0" + "\0\0\0\x05" +
    padded(types("b")) + "\0\0\0\x01";
  const says = [
    OK + hello,
    message(SIGNAL, []),
    message(SIGNAL, [replyTo(2), types("s")], text("a signal")),
    message(METHOD_RETURN, [replyTo(1), types("s")], text("another call's")),
    message(ERROR, [replyTo(77), errorName]),
    message(METHOD_RETURN, [replyTo(2), types("s")], text("ours")),
    message(METHOD_RETURN, [replyTo(3)]),
    message(METHOD_RETURN, [types("su"), replyTo(4)], `${text(long)}\0\0\0${u32(7)}`),
    bigEndian,
  ];
  const { outcome } = await withBus(says.join(""), (bus) => [1, 2, 3, 4].map(() => bus!.call(question)));
  expect(outcome).toEqual(["ours", undefined, long, true]);
});

test("an error is thrown with its name and its text", async () => {
  const says = OK + hello + message(ERROR, [replyTo(2), errorName, types("s")], text("because")) +
    message(ERROR, [replyTo(3), errorName]);
  const { outcome } = await withBus(says, (bus) => [1, 2].map(() => outcomeOf(() => bus!.call(question))));
  const [because, bare] = outcome as DbusError[];
  expect([because, bare].every((error) => error instanceof DbusError)).toBe(true);
  expect([because!.name, because!.errorName, because!.message, bare!.message])
    .toEqual(["DbusError", "a.b", "because", "a.b"]);
});

const LIMIT = 16 * 1024 * 1024;
/** The beginning of a message whose list of fields is eight bytes long. */
const beginning = (bytes: number) => `l\x02\0\x01${u32(bytes - 24)}${u32(9)}${u32(8)}`;

test.each([
  ["a refusal", "REJECTED EXTERNAL\r\n", "D-Bus: the bus refuses us: REJECTED EXTERNAL"],
  ["no line", "OK".repeat(2048), "D-Bus: the bus refuses us: "],
  ["nothing", "", "read D-Bus: broken pipe"],
  ["half a greeting", OK + hello.slice(0, -1), "read D-Bus: broken pipe"],
  ["half a header", OK + hello.slice(0, 15), "read D-Bus: broken pipe"],
  ["an error for a greeting", OK + message(ERROR, [replyTo(1), errorName]), "a.b"],
  ["more than there may be", OK + beginning(LIMIT + 8), `D-Bus: a message of ${LIMIT + 8} bytes`],
  ["much, and no end of it", OK + beginning(LIMIT), "read D-Bus: broken pipe"],
])("%s is no greeting", async (_, says, reason) => {
  const { outcome } = await withBus(says, () => "a bus", { isDone: true });
  expect(outcome).toBeInstanceOf(Error);
  expect((outcome as Error).message).toBe(reason);
});

test("a bus that says nothing is not waited for longer than was asked", async () => {
  const { outcome } = await withBus("", () => "a bus", { patienceMs: 50 });
  expect((outcome as Error).message).toBe("D-Bus: no answer within 0.05 s");
});

test("whoever answers each question just before its limit is asked no more when a verb has waited for so long", async () => {
  let now = 0, asked = 0;
  const clock = spyOn(performance, "now").mockImplementation(() => now);
  const says = OK + hello + message(METHOD_RETURN, [replyTo(2), types("b")], u32(1));
  const question = () =>
    withFirewalld((call) => {
      asked++;
      now += 13_000;
      return call("zone", "querySource", ["public", "10.0.0.1/32"]);
    });
  try {
    const { outcome } = await withBus(
      says,
      () => withOwnPatience(() => [1, 2, 3, 4].map(() => outcomeOf(question))).concat(withOwnPatience(question)),
    );
    const late = new Error("D-Bus: no answer within 25 s");
    expect(outcome).toEqual([true, true, late, late, true]);
    expect(asked).toBe(3);
  } finally {
    clock.mockRestore();
  }
});

test("the first address at which somebody listens counts, of the kinds that are known here", async () => {
  const found = (address: (path: string) => string) =>
    withBus(OK + hello, (bus) => bus === undefined ? "none" : "a bus", { address });
  const others = "tcp:host=127.0.0.1,port=1;unix:path=/nonesuch;unix:abstract=nonesuch-patchbay;unix:tmpdir=/tmp";
  expect((await found((path) => `${others};unix:guid=0,path=${path.replaceAll("-", "%2d")},x=y`)).outcome).toBe(
    "a bus",
  );
  process.env.DBUS_SYSTEM_BUS_ADDRESS = others;
  expect(systemBusAddress()).toBe(others);
  expect(openSystemBus()).toBeUndefined();
  delete process.env.DBUS_SYSTEM_BUS_ADDRESS;
  expect(systemBusAddress()).toBe("unix:path=/var/run/dbus/system_bus_socket");
});

test("the bus is asked who has a name", async () => {
  const says = OK + hello + message(METHOD_RETURN, [replyTo(2), types("b")], u32(1));
  const { outcome, heard } = await withBus(says, (bus) => bus!.call(nameHasOwner, ["a.b"]));
  expect(outcome).toBe(true);
  expect(heard).toContain(`\x03\x01s\0${text("NameHasOwner")}`);
});
