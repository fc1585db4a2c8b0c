/**
 * Calls on the system's message bus: the part of D-Bus that a call of one service needs (D-Bus specification 0.42, "Message
 * Protocol", "Authentication Protocol"). Arguments are strings; an answer is a string, a boolean or nothing.
 */
import { EAGAIN, ECONNREFUSED, ENOENT, EPIPE, SyscallError } from "../ffi/errno.ts";
import { variable } from "../ffi/environment.ts";
import { closeFile, writeAll } from "../ffi/files.ts";
import { bind, check, lastErrno, libc, retrying, utf8 } from "../ffi/libc.ts";

/** A refusal by the bus or by the service. */
export class DbusError extends Error {
  constructor(readonly errorName: string, text: string) {
    super(text === "" ? errorName : text);
    this.name = "DbusError";
  }
}

export interface Bus {
  /** Throws a DbusError when the answer is one. */
  call(method: Method, args: readonly string[]): Answer;
  close(): void;
}

export interface Method {
  destination: string;
  path: string;
  interface: string;
  member: string;
}

export type Answer = string | boolean | undefined;

const AF_UNIX = 1, SOCK_STREAM = 1, SOCK_CLOEXEC = 0o2000000;
const DEFAULT_ADDRESS = "unix:path=/var/run/dbus/system_bus_socket";
const SOL_SOCKET = 1, SO_SNDTIMEO = 21;
/** As long as D-Bus libraries wait for an answer. */
const PATIENCE_MS = 25_000;
const MESSAGE_LIMIT_BYTES = 1024 * 1024;
const METHOD_CALL = 1, METHOD_RETURN = 2, ERROR = 3;
const PATH = 1, INTERFACE = 2, MEMBER = 3, ERROR_NAME = 4, REPLY_SERIAL = 5, DESTINATION = 6, SIGNATURE = 8;

const theBus = "org.freedesktop.DBus";
export const nameHasOwner: Method = {
  destination: theBus,
  path: "/org/freedesktop/DBus",
  interface: theBus,
  member: "NameHasOwner",
};

/** Returns undefined where there is no bus. Opening it and all calls together wait no longer than `patienceMs`. */
export function openSystemBus(patienceMs = PATIENCE_MS): Bus | undefined {
  const fd = connect(variable("DBUS_SYSTEM_BUS_ADDRESS") || DEFAULT_ADDRESS, patienceMs);
  if (fd === undefined) return undefined;
  const incoming = new Incoming(fd, patienceMs);
  let serial = 0;
  try {
    // The bus allows sending everything at once: who we are, and the greeting that must come first.
    const uid = utf8(String(process.geteuid!())).toHex();
    const greeting = { ...nameHasOwner, member: "Hello" };
    writeAll(fd, utf8(`\0AUTH EXTERNAL ${uid}\r\nBEGIN\r\n`), "D-Bus");
    const line = incoming.line();
    if (!line.startsWith("OK ")) throw new Error(`D-Bus: the bus refuses us: ${line}`);
    call(greeting, []);
  } catch (error) {
    closeFile(fd);
    throw error;
  }
  return { call, close: () => closeFile(fd) };

  function call(method: Method, args: readonly string[]): Answer {
    const ours = ++serial;
    writeAll(fd!, encodeCall(ours, method, args), "D-Bus");
    for (;;) {
      const message = decode(incoming.message());
      if (message.replySerial !== ours) continue;
      if (message.type === ERROR) throw new DbusError(message.errorName, String(message.answer ?? ""));
      if (message.type === METHOD_RETURN) return message.answer;
    }
  }
}

function noAnswer(patienceMs: number): Error {
  return new Error(`D-Bus: no answer within ${patienceMs / 1000} s`);
}

function connect(addresses: string, patienceMs: number): number | undefined {
  for (const address of addresses.split(";")) {
    const target = socketAddress(address);
    if (target === undefined) continue;
    const fd = check("socket AF_UNIX", libc.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    limitSending(fd, patienceMs);
    const { connect } = bind({ connect: { args: ["i32", "ptr", "u32"], returns: "i32" } });
    if (connect(fd, target, target.length) === 0) return fd;
    const errno = lastErrno();
    closeFile(fd);
    if (errno === EAGAIN) throw noAnswer(patienceMs);
    if (errno !== ENOENT && errno !== ECONNREFUSED) throw new SyscallError("connect", errno, address);
  }
  return undefined;
}

/** Also limits how long connecting waits for a bus that accepts no connections. */
function limitSending(fd: number, patienceMs: number): void {
  const timeval = new BigInt64Array([BigInt(Math.floor(patienceMs / 1000)), BigInt((patienceMs % 1000) * 1000)]);
  check("setsockopt SO_SNDTIMEO", libc.setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, timeval, 16));
}

/** struct sockaddr_un of `unix:path=…` or `unix:abstract=…`; undefined for other kinds of addresses. */
function socketAddress(address: string): Uint8Array | undefined {
  const parts = /^unix:(?:.*,)?(path|abstract)=([^,]*)/.exec(address);
  if (parts === null) return undefined;
  const path = utf8(decodeURIComponent(parts[2]!));
  const bytes = new Uint8Array(2 + path.length + 1);
  bytes[0] = AF_UNIX;
  bytes.set(path, parts[1] === "path" ? 2 : 3);
  return bytes;
}

/** Little-endian. Every value is aligned to its size, counted from the start of the message. */
class Encoder {
  private bytes: number[] = [];

  align(size: number): this {
    while (this.bytes.length % size !== 0) this.bytes.push(0);
    return this;
  }

  u8(value: number): this {
    this.bytes.push(value);
    return this;
  }

  u32(value: number): this {
    this.align(4);
    this.bytes.push(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, (value >>> 24) & 0xff);
    return this;
  }

  string(value: string): this {
    const text = utf8(value);
    this.u32(text.length);
    this.bytes.push(...text, 0);
    return this;
  }

  signature(value: string): this {
    this.bytes.push(value.length, ...utf8(value), 0);
    return this;
  }

  patch(at: number, value: number): this {
    this.bytes.splice(at, 4, value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, (value >>> 24) & 0xff);
    return this;
  }

  get length(): number {
    return this.bytes.length;
  }

  done(): Uint8Array {
    return new Uint8Array(this.bytes);
  }
}

function encodeCall(serial: number, method: Method, args: readonly string[]): Uint8Array {
  const message = new Encoder().u8("l".charCodeAt(0)).u8(METHOD_CALL).u8(0).u8(1).u32(0).u32(serial).u32(0);
  const fieldsAt = message.length;
  const field = (code: number, type: string, value: string) => {
    message.align(8).u8(code).signature(type);
    if (type === "g") message.signature(value);
    else message.string(value);
  };
  field(PATH, "o", method.path);
  field(INTERFACE, "s", method.interface);
  field(MEMBER, "s", method.member);
  field(DESTINATION, "s", method.destination);
  if (args.length > 0) field(SIGNATURE, "g", "s".repeat(args.length));
  message.patch(fieldsAt - 4, message.length - fieldsAt).align(8);
  const bodyAt = message.length;
  for (const each of args) message.string(each);
  return message.patch(4, message.length - bodyAt).done();
}

interface Decoded {
  type: number;
  replySerial: number;
  errorName: string;
  answer: Answer;
}

function decode(bytes: Uint8Array): Decoded {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const little = bytes[0] === "l".charCodeAt(0);
  let at = 12;
  const align = (size: number) => at = Math.ceil(at / size) * size;
  const u32 = () => {
    align(4);
    at += 4;
    return view.getUint32(at - 4, little);
  };
  const text = (length: number) => {
    at += length + 1;
    return new TextDecoder().decode(bytes.subarray(at - length - 1, at - 1));
  };
  const value = (type: string): Answer | number => {
    if (type === "s" || type === "o") return text(u32());
    if (type === "g") return text(bytes[at++]!);
    if (type === "u") return u32();
    return type === "b" ? u32() !== 0 : undefined;
  };
  const decoded: Decoded = { type: bytes[1]!, replySerial: 0, errorName: "", answer: undefined };
  let signature = "";
  for (const end = u32() + at; at < end;) {
    align(8);
    const code = bytes[at++]!, type = text(bytes[at++]!), field = value(type);
    if (field === undefined) throw new Error(`D-Bus: header field ${code} of type "${type}"`);
    if (code === REPLY_SERIAL) decoded.replySerial = field as number;
    if (code === ERROR_NAME) decoded.errorName = field as string;
    if (code === SIGNATURE) signature = field as string;
  }
  align(8);
  const [first] = signature;
  if (first === "s" || first === "b") decoded.answer = value(first) as Answer;
  return decoded;
}

/** Reads from the bus, a line or a message at a time. */
class Incoming {
  private bytes = new Uint8Array(0);
  private readonly deadline: number;

  constructor(private readonly fd: number, private readonly patienceMs: number) {
    this.deadline = Date.now() + patienceMs;
  }

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
    const POLLIN = 1;
    const pollfd = new Uint8Array(8), view = new DataView(pollfd.buffer);
    view.setInt32(0, this.fd, true);
    view.setInt16(4, POLLIN, true);
    const ready = retrying("poll", () => libc.poll(pollfd, 1, Math.max(0, this.deadline - Date.now())));
    if (ready === 0) throw noAnswer(this.patienceMs);
    const chunk = new Uint8Array(4096);
    const count = retrying("read", () => Number(libc.read(this.fd, chunk, chunk.length)), "D-Bus");
    if (count === 0) throw new SyscallError("read", EPIPE, "D-Bus");
    const all = new Uint8Array(this.bytes.length + count);
    all.set(this.bytes);
    all.set(chunk.subarray(0, count), this.bytes.length);
    this.bytes = all;
  }
}
