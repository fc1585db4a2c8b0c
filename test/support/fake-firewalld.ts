/**
 * The program behind firewalld.ts, run inside a machine: a service on its message bus under firewalld's name. It stores
 * the sources of zones, and has one property. Prints "ready" when it has the name. Its arguments are a file that has all
 * sources, before the caller that changed them has the answer, and the property's value.
 */
import { writeFileSync } from "node:fs";
import { connect } from "node:net";

const NAME = "org.fedoraproject.FirewallD1";
const METHOD_CALL = 1, METHOD_RETURN = 2, ERROR = 3;
const sources = new Map<string, string>();
const bus = connect("/run/dbus/system_bus_socket");
let serial = 0, greeted = false;
let pending = Buffer.alloc(0);

type Field = [code: number, type: "s" | "o" | "g" | "u", value: string | number];
type Value = string | boolean | number | { variant: string };

/** Values in sequence, each aligned to its size. */
class Body {
  bytes: number[] = [];
  align(size: number) {
    while (this.bytes.length % size !== 0) this.bytes.push(0);
  }
  u32(value: number) {
    this.align(4);
    for (let shift = 0; shift < 32; shift += 8) this.bytes.push((value >>> shift) & 0xff);
  }
  text(value: string) {
    this.u32(Buffer.byteLength(value));
    this.bytes.push(...Buffer.from(value), 0);
  }
  short(value: string) {
    this.bytes.push(value.length, ...Buffer.from(value), 0);
  }
  value(value: Value) {
    if (typeof value === "string") this.text(value);
    else if (typeof value === "object") {
      this.short("s");
      this.text(value.variant);
    } else this.u32(Number(value));
  }
}

function send(type: number, fields: Field[], values: Value[]): void {
  const body = new Body(), message = new Body();
  for (const value of values) body.value(value);
  const signature = values.map((value) =>
    ({ string: "s", boolean: "b", number: "u", object: "v" })[typeof value as "string"]
  )
    .join("");
  if (signature !== "") fields.push([8, "g", signature]);
  const list = new Body();
  for (const [code, kind, value] of fields) {
    list.align(8);
    list.bytes.push(code);
    list.short(kind);
    if (kind === "g") list.short(value as string);
    else list.value(value);
  }
  message.bytes.push(0x6c, type, 0, 1);
  message.u32(body.bytes.length);
  message.u32(++serial);
  message.u32(list.bytes.length);
  message.bytes.push(...list.bytes);
  message.align(8);
  bus.write(Buffer.from([...message.bytes, ...body.bytes]));
}

function callBus(member: string, values: Value[]): void {
  const name = "org.freedesktop.DBus";
  send(METHOD_CALL, [[1, "o", "/org/freedesktop/DBus"], [2, "s", name], [3, "s", member], [6, "s", name]], values);
}

interface Received {
  type: number;
  serial: number;
  fields: Map<number, string | number>;
  strings: string[];
}

function receive(message: Buffer): Received {
  let at = 16;
  const end = at + message.readUInt32LE(12), fields = new Map<number, string | number>();
  const u32 = () => {
    at = Math.ceil(at / 4) * 4 + 4;
    return message.readUInt32LE(at - 4);
  };
  const text = (length: number) => {
    at += length + 1;
    return message.toString("utf8", at - length - 1, at - 1);
  };
  while (at < end) {
    at = Math.ceil(at / 8) * 8;
    const code = message[at++]!, type = text(message[at++]!);
    fields.set(code, type === "g" ? text(message[at++]!) : type === "u" ? u32() : text(u32()));
  }
  at = Math.ceil(at / 8) * 8;
  const strings = [...String(fields.get(8) ?? "")].filter((type) => type === "s").map(() => text(u32()));
  return { type: message[1]!, serial: message.readUInt32LE(8), fields, strings };
}

function answer(call: Received): void {
  const back: Field[] = [[5, "u", call.serial], [6, "s", call.fields.get(7) as string]];
  const [zone, source] = call.strings as [string, string];
  const refuse = (text: string) => send(ERROR, [...back, [4, "s", `${NAME}.Exception`]], [text]);
  if (zone === "nonesuch") return refuse(`INVALID_ZONE: ${zone}`);
  switch (call.fields.get(3)) {
    case "addSource":
      if (sources.get(source) === zone) return refuse(`ZONE_ALREADY_SET: '${source}' already bound to '${zone}'`);
      sources.set(source, zone);
      break;
    case "removeSource":
      if (!sources.delete(source)) return refuse(`UNKNOWN_SOURCE: '${source}' is not in any zone`);
      break;
    case "Get":
      return send(METHOD_RETURN, back, [{ variant: process.argv[3]! }]);
    case "querySource":
      return send(METHOD_RETURN, back, [sources.get(source) === zone]);
  }
  writeFileSync(process.argv[2]!, JSON.stringify([...sources]));
  send(METHOD_RETURN, back, [zone]);
}

bus.write(`\0AUTH EXTERNAL ${Buffer.from(String(process.getuid!())).toString("hex")}\r\nBEGIN\r\n`);
callBus("Hello", []);
callBus("RequestName", [NAME, 0]);
bus.on("data", (chunk) => {
  pending = Buffer.concat([pending, Buffer.from(chunk)]);
  if (!greeted && pending.includes("\r\n")) {
    pending = pending.subarray(pending.indexOf("\r\n") + 2);
    greeted = true;
  }
  while (greeted && pending.length >= 16) {
    const length = Math.ceil((16 + pending.readUInt32LE(12)) / 8) * 8 + pending.readUInt32LE(4);
    if (pending.length < length) break;
    const message = receive(pending.subarray(0, length));
    pending = pending.subarray(length);
    if (message.type === METHOD_CALL) answer(message);
    if (message.type === METHOD_RETURN && message.fields.get(5) === 2) console.log("ready");
  }
});
for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
process.exit(0);
