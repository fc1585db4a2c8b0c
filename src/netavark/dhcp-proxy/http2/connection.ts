/**
 * The server's side of one HTTP/2 connection, as far as gRPC needs it: RFC 9113. Bytes in, bytes out; no sockets, no clock.
 *
 * Requests and answers here are small, so what we send is not held back for the other side's windows: a connection whose
 * window is used up ends.
 */
import { utf8 } from "../../../ffi/libc.ts";
import { encodeFields, type Field, HeaderDecoder } from "./hpack.ts";
import { ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, ProtocolError } from "./protocol-error.ts";

export interface Request {
  readonly stream: number;
  readonly path: string;
  readonly body: Uint8Array;
}

export interface Response {
  headers: readonly Field[];
  body?: Uint8Array;
  trailers?: readonly Field[];
}

interface Receiving {
  path: string;
  parts: Uint8Array[];
  length: number;
}

const PREFACE = utf8("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const HEADER_BYTES = 9, LARGEST_FRAME = 16_384, LARGEST_BLOCK = 32_768, LARGEST_BODY = 65_536;
const MOST_STREAMS = 128, WINDOW = 65_535;
const DATA = 0, HEADERS = 1, PRIORITY = 2, RST_STREAM = 3, SETTINGS = 4, PUSH_PROMISE = 5;
const PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8, CONTINUATION = 9;
const ACK = 1, END_STREAM = 1, END_HEADERS = 4, PADDED = 8, WITH_PRIORITY = 32;
const MAX_CONCURRENT_STREAMS = 3, REFUSED_STREAM = 7;

export class Http2Connection {
  private pending: Uint8Array = new Uint8Array(0);
  private isGreeted = false;
  private readonly decoder = new HeaderDecoder();
  private readonly receiving = new Map<number, Receiving>();
  /** Requests that have no answer yet. */
  private readonly open = new Set<number>();
  private block: { stream: number; parts: Uint8Array[]; length: number; isWhole: boolean } | undefined;
  private lastStream = 0;
  private window = WINDOW;

  constructor(
    private readonly send: (bytes: Uint8Array) => void,
    private readonly serve: (request: Request) => void,
    /** Nobody waits for the answer any more. */
    private readonly gone: (stream: number) => void,
  ) {}

  get isIdle(): boolean {
    return this.open.size === 0;
  }

  /** What has arrived. Throws ProtocolError after it has said goodbye. */
  receive(bytes: Uint8Array): void {
    try {
      this.pending = joined([this.pending, bytes]);
      if (!this.isGreeted && !this.greet()) return;
      for (let length = this.frameLength(); length !== undefined; length = this.frameLength()) {
        const frame = this.pending.subarray(0, length);
        this.pending = this.pending.subarray(length);
        this.take(frame);
      }
    } catch (error) {
      if (error instanceof ProtocolError) this.frame(GOAWAY, 0, 0, joined([u32(this.lastStream), u32(error.code)]));
      throw error;
    }
  }

  private greet(): boolean {
    const length = Math.min(PREFACE.length, this.pending.length);
    if (this.pending.subarray(0, length).some((byte, at) => byte !== PREFACE[at])) {
      throw new ProtocolError("it does not speak HTTP/2");
    }
    if (length < PREFACE.length) return false;
    this.pending = this.pending.subarray(length);
    this.isGreeted = true;
    this.frame(SETTINGS, 0, 0, joined([new Uint8Array([0, MAX_CONCURRENT_STREAMS]), u32(MOST_STREAMS)]));
    return true;
  }

  /** Of the next frame, when all of it is there. */
  private frameLength(): number | undefined {
    const { pending } = this;
    if (pending.length < HEADER_BYTES) return undefined;
    const length = (pending[0]! << 16) | (pending[1]! << 8) | pending[2]!;
    if (length > LARGEST_FRAME) throw new ProtocolError(`a frame of ${length} bytes`, FRAME_SIZE_ERROR);
    return pending.length < HEADER_BYTES + length ? undefined : HEADER_BYTES + length;
  }

  private take(frame: Uint8Array): void {
    const type = frame[3]!, flags = frame[4]!, stream = readU32(frame, 5) & 0x7fffffff;
    const payload = frame.subarray(HEADER_BYTES);
    if (this.block !== undefined && (type !== CONTINUATION || stream !== this.block.stream)) {
      throw new ProtocolError("header fields that are interrupted");
    }
    switch (type) {
      case DATA:
        return this.takeData(stream, flags, payload);
      case HEADERS:
        return this.takeHeaders(stream, flags, payload);
      case CONTINUATION:
        return this.continueBlock(stream, flags, payload);
      case RST_STREAM:
        return this.forget(stream);
      case SETTINGS:
        if (payload.length % 6 !== 0) throw new ProtocolError("torn settings", FRAME_SIZE_ERROR);
        if ((flags & ACK) === 0) this.frame(SETTINGS, ACK, 0);
        return;
      case PING:
        if (payload.length !== 8) throw new ProtocolError("a torn ping", FRAME_SIZE_ERROR);
        if ((flags & ACK) === 0) this.frame(PING, ACK, 0, payload);
        return;
      case WINDOW_UPDATE:
        if (payload.length !== 4) throw new ProtocolError("a torn window update", FRAME_SIZE_ERROR);
        if (stream === 0) this.window = Math.min(2 ** 31 - 1, this.window + (readU32(payload, 0) & 0x7fffffff));
        return;
      case PUSH_PROMISE:
        throw new ProtocolError("a client that pushes");
      case PRIORITY:
      case GOAWAY:
      default:
        // Frames of types that nobody knows are ignored (section 5.5).
        return;
    }
  }

  private takeHeaders(stream: number, flags: number, payload: Uint8Array): void {
    let block = withoutPadding(flags, payload);
    if ((flags & WITH_PRIORITY) !== 0) {
      if (block.length < 5) throw new ProtocolError("torn header fields", FRAME_SIZE_ERROR);
      block = block.subarray(5);
    }
    const isTrailer = this.receiving.has(stream);
    if (!isTrailer && (stream % 2 === 0 || stream <= this.lastStream)) throw new ProtocolError(`stream ${stream}`);
    this.lastStream = Math.max(this.lastStream, stream);
    this.block = { stream, parts: [], length: 0, isWhole: (flags & END_STREAM) !== 0 };
    this.continueBlock(stream, flags, block);
  }

  private continueBlock(stream: number, flags: number, payload: Uint8Array): void {
    const { block } = this;
    if (block === undefined) throw new ProtocolError("header fields that go on without a beginning");
    block.parts.push(payload);
    block.length += payload.length;
    // Empty ones without an end would keep us busy, too.
    if (block.length > LARGEST_BLOCK || block.parts.length > 16) {
      throw new ProtocolError("too many header fields", ENHANCE_YOUR_CALM);
    }
    if ((flags & END_HEADERS) === 0) return;
    this.block = undefined;
    const fields = this.decoder.decode(joined(block.parts)), before = this.receiving.get(stream);
    if (before === undefined && this.open.size >= MOST_STREAMS) {
      return this.frame(RST_STREAM, 0, stream, u32(REFUSED_STREAM));
    }
    const path = fields.find(([name]) => name === ":path")?.[1] ?? "";
    this.open.add(stream);
    this.receiving.set(stream, before ?? { path, parts: [], length: 0 });
    if (block.isWhole) this.finish(stream);
  }

  private takeData(stream: number, flags: number, payload: Uint8Array): void {
    if (stream === 0 || stream > this.lastStream) throw new ProtocolError(`data of stream ${stream}`);
    if (payload.length > 0) this.frame(WINDOW_UPDATE, 0, 0, u32(payload.length));
    const request = this.receiving.get(stream);
    // It was refused, or given up.
    if (request === undefined) return;
    const bytes = withoutPadding(flags, payload);
    request.parts.push(bytes);
    request.length += bytes.length;
    if (request.length > LARGEST_BODY || request.parts.length > LARGEST_BODY / 16) {
      throw new ProtocolError("a request that is too large", ENHANCE_YOUR_CALM);
    }
    if ((flags & END_STREAM) !== 0) this.finish(stream);
    else if (payload.length > 0) this.frame(WINDOW_UPDATE, 0, stream, u32(payload.length));
  }

  private finish(stream: number): void {
    const { path, parts } = this.receiving.get(stream)!;
    this.receiving.delete(stream);
    this.serve({ stream, path, body: joined(parts) });
  }

  private forget(stream: number): void {
    this.receiving.delete(stream);
    if (this.open.delete(stream)) this.gone(stream);
  }

  /** The other side has ended the connection. */
  end(): void {
    for (const stream of [...this.open]) this.forget(stream);
  }

  /** Does nothing for a request that has been given up. */
  answer(stream: number, { headers, body, trailers }: Response): void {
    if (!this.open.delete(stream)) return;
    const last = trailers === undefined ? END_STREAM : 0;
    this.frame(HEADERS, END_HEADERS | (body === undefined ? last : 0), stream, encodeFields(headers));
    if (body !== undefined) {
      this.window -= body.length;
      if (this.window < 0) throw new ProtocolError("it does not make room for answers", FLOW_CONTROL_ERROR);
      this.frame(DATA, last, stream, body);
    }
    if (trailers !== undefined) this.frame(HEADERS, END_HEADERS | END_STREAM, stream, encodeFields(trailers));
  }

  private frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array(0)): void {
    const { length } = payload, head = new Uint8Array([length >> 16, length >> 8, length, type, flags]);
    this.send(joined([head, u32(stream), payload]));
  }
}

function withoutPadding(flags: number, payload: Uint8Array): Uint8Array {
  if ((flags & PADDED) === 0) return payload;
  const padding = payload[0] ?? Infinity;
  if (padding >= payload.length) throw new ProtocolError("a frame with more padding than bytes");
  return payload.subarray(1, payload.length - padding);
}

function u32(value: number): Uint8Array {
  return new Uint8Array([value >>> 24, value >>> 16, value >>> 8, value]);
}

function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
