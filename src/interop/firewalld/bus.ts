/**
 * Calls on the system's message bus: the part of D-Bus that a call of one service needs (D-Bus specification 0.42, "Message
 * Protocol", "Authentication Protocol").
 */
import { beforeWaitingFor, patienceHereMs } from "../../process/patience.ts";
import { ECONNREFUSED, ENOENT, EPIPE, ETIMEDOUT, isErrno, SyscallError } from "../../ffi/errno.ts";
import { variable } from "../../ffi/environment.ts";
import { closeFile, pollOne, writeAll } from "../../ffi/files.ts";
import { libc, retrying, utf8 } from "../../ffi/libc.ts";
import { SOCK_STREAM } from "../../ffi/socket/socket.ts";
import { connectTo } from "../../ffi/socket/unix.ts";
import { completeTypes, Decoder, Encoder, type Value, type Variant } from "./marshal.ts";

/** A refusal by the bus or by the service. */
export class DbusError extends Error {
  constructor(readonly errorName: string, text: string) {
    super(text === "" ? errorName : text);
    this.name = "DbusError";
  }
}

export interface Bus {
  /** Arguments are texts, unless a signature says otherwise. Throws a DbusError when the answer is one. */
  call(method: Method, args?: readonly Value[], signature?: string): BusReply;
  close(): void;
}

interface Method {
  destination: string;
  path: string;
  interface: string;
  member: string;
}

/** The first value of an answer. */
export type BusReply = Value | undefined;

/** Where the system's bus listens, unless the environment says otherwise (D-Bus specification 0.42, "System message bus"). */
export const SYSTEM_BUS_SOCKET = "/var/run/dbus/system_bus_socket";
/** As long as D-Bus libraries wait for an answer; here for all that a verb asks. */
export const PATIENCE_MS = 25_000;
/** A policy of firewalld has a text for each port. */
const MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024;
const LITTLE_ENDIAN = 0x6c, FIELDS = "a(yv)", FIELDS_AT = 12;
const METHOD_CALL = 1, METHOD_RETURN = 2, ERROR = 3;
const PATH = 1, INTERFACE = 2, MEMBER = 3, ERROR_NAME = 4, REPLY_SERIAL = 5, DESTINATION = 6, SIGNATURE = 8;

const theBus = "org.freedesktop.DBus";
export const nameHasOwner: Method = {
  destination: theBus,
  path: "/org/freedesktop/DBus",
  interface: theBus,
  member: "NameHasOwner",
};

/**
 * Returns undefined where there is no bus. Opening it and all calls together wait no longer than `patienceMs`, of which
 * `leftMs` are left.
 */
export function openSystemBus(patienceMs = PATIENCE_MS, leftMs = patienceMs): Bus | undefined {
  if (leftMs === 0) throw noAnswer(patienceMs);
  const deadline = performance.now() + leftMs, fd = connect(systemBusAddress(), patienceMs, leftMs);
  if (fd === undefined) return undefined;
  const incoming = new Incoming(fd, patienceMs, deadline);
  let serial = 0;
  try {
    beforeWaitingFor("firewalld", patienceMs);
    // The bus allows sending everything at once: who we are, and the greeting that must come first.
    const uid = utf8(String(process.geteuid!())).toHex();
    const greeting = { ...nameHasOwner, member: "Hello" };
    send(utf8(`\0AUTH EXTERNAL ${uid}\r\nBEGIN\r\n`));
    const line = incoming.line();
    if (!line.startsWith("OK ")) throw new Error(`D-Bus: the bus refuses us: ${line}`);
    call(greeting);
  } catch (error) {
    closeFile(fd);
    throw error;
  }
  return { call, close: () => closeFile(fd) };

  function send(bytes: Uint8Array): void {
    try {
      writeAll(fd!, bytes, "D-Bus", Math.max(0, deadline - performance.now()));
    } catch (error) {
      throw isErrno(error, ETIMEDOUT) ? noAnswer(patienceMs) : error;
    }
  }

  function call(method: Method, args: readonly Value[] = [], signature = "s".repeat(args.length)): BusReply {
    const ours = ++serial;
    send(encodeCall(ours, method, args, signature));
    for (;;) {
      const message = decode(incoming.message());
      if (message.replySerial !== ours) continue;
      if (message.type === ERROR) throw new DbusError(message.errorName, String(message.answer ?? ""));
      if (message.type === METHOD_RETURN) return message.answer;
    }
  }
}

export function systemBusAddress(): string {
  return variable("DBUS_SYSTEM_BUS_ADDRESS") || `unix:path=${SYSTEM_BUS_SOCKET}`;
}

function noAnswer(patienceMs: number): Error {
  return new Error(`D-Bus: no answer within ${patienceMs / 1000} s`);
}

function connect(addresses: string, patienceMs: number, leftMs: number): number | undefined {
  for (const address of addresses.split(";")) {
    // Other kinds of addresses are not for us.
    const [, kind, name] = /^unix:(?:.*,)?(path|abstract)=([^,]*)/.exec(address) ?? [];
    if (name === undefined) continue;
    try {
      const path = (kind === "path" ? "" : "\0") + decodeURIComponent(name);
      return connectTo(path, patienceHereMs(leftMs), SOCK_STREAM, address);
    } catch (error) {
      if (isErrno(error, ETIMEDOUT)) {
        beforeWaitingFor("firewalld", patienceMs);
        throw noAnswer(patienceMs);
      }
      if (!isErrno(error, ENOENT, ECONNREFUSED)) throw error;
    }
  }
  return undefined;
}

function encodeCall(serial: number, method: Method, args: readonly Value[], signature: string): Uint8Array {
  const fields: Value[] = [
    [PATH, { signature: "o", value: method.path }],
    [INTERFACE, { signature: "s", value: method.interface }],
    [MEMBER, { signature: "s", value: method.member }],
    [DESTINATION, { signature: "s", value: method.destination }],
  ];
  if (signature !== "") fields.push([SIGNATURE, { signature: "g", value: signature }]);
  const message = new Encoder();
  for (const each of [LITTLE_ENDIAN, METHOD_CALL, 0, 1]) message.write("y", each);
  const lengthAt = message.length;
  message.write("u", 0).write("u", serial).write(FIELDS, fields).align(8);
  const bodyAt = message.length;
  completeTypes(signature).forEach((type, index) => message.write(type, args[index]!));
  return message.number(lengthAt, message.length - bodyAt).done();
}

interface Decoded {
  type: number;
  replySerial: number;
  errorName: string;
  answer: BusReply;
}

function decode(bytes: Uint8Array): Decoded {
  const decoder = new Decoder(bytes, bytes[0] === LITTLE_ENDIAN, FIELDS_AT);
  const fields = new Map((decoder.read(FIELDS) as [number, Variant][]).map(([code, { value }]) => [code, value]));
  decoder.align(8);
  const [first] = completeTypes(String(fields.get(SIGNATURE) ?? ""));
  return {
    type: bytes[1]!,
    replySerial: Number(fields.get(REPLY_SERIAL) ?? 0),
    errorName: String(fields.get(ERROR_NAME) ?? ""),
    answer: first === undefined ? undefined : decoder.read(first),
  };
}

/** Reads from the bus, a line or a message at a time. */
class Incoming {
  private bytes = new Uint8Array(0);

  constructor(
    private readonly fd: number,
    private readonly patienceMs: number,
    private readonly deadline: number,
  ) {}

  line(): string {
    const end = () => this.bytes.indexOf(0x0a);
    while (end() < 0 && this.bytes.length < 4096) this.more();
    return new TextDecoder().decode(this.take(end() + 1)).trimEnd();
  }

  message(): Uint8Array {
    while (this.bytes.length < 16) this.more();
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset), little = this.bytes[0] === "l".charCodeAt(0);
    const fields = view.getUint32(12, little), body = view.getUint32(4, little);
    const length = Math.ceil((16 + fields) / 8) * 8 + body;
    if (length > MESSAGE_LIMIT_BYTES) throw new Error(`D-Bus: a message of ${length} bytes`);
    while (this.bytes.length < length) this.more();
    return this.take(length);
  }

  private take(length: number): Uint8Array {
    const taken = this.bytes.slice(0, length);
    this.bytes = this.bytes.slice(length);
    return taken;
  }

  private more(): void {
    const POLLIN = 1, leftMs = Math.ceil(this.deadline - performance.now());
    // Others may send all the time.
    if (leftMs <= 0 || retrying("poll", () => pollOne(this.fd, POLLIN, leftMs)) === 0) {
      throw noAnswer(this.patienceMs);
    }
    const chunk = new Uint8Array(65_536);
    const count = retrying("read", () => Number(libc.read(this.fd, chunk, chunk.length)), "D-Bus");
    if (count === 0) throw new SyscallError("read", EPIPE, "D-Bus");
    const all = new Uint8Array(this.bytes.length + count);
    all.set(this.bytes);
    all.set(chunk.subarray(0, count), this.bytes.length);
    this.bytes = all;
  }
}
