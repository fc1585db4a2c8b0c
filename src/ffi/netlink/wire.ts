/**
 * The bytes of netlink: message header, attributes, alignment (netlink(7), linux/netlink.h). Pure. The numbers of
 * messages and attributes are in uapi/.
 *
 * Netlink uses host byte order, and every machine this runs on is little-endian. Functions for network order end in
 * "be".
 */

/** linux/netlink.h: struct nlmsghdr is length u32, type u16, flags u16, sequence u32, port u32. */
export const HEADER_BYTES = 16;

export const NLM_F_REQUEST = 0x1;
export const NLM_F_MULTI = 0x2;
export const NLM_F_ACK = 0x4;
export const NLM_F_ECHO = 0x8;
export const NLM_F_DUMP_INTR = 0x10;
export const NLM_F_DUMP = 0x300;
export const NLM_F_REPLACE = 0x100;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_APPEND = 0x800;
/** On an ACK: the answer contains only the header of the request. */
export const NLM_F_CAPPED = 0x100;
/** On an ACK: attributes of the extended acknowledgement follow. */
export const NLM_F_ACK_TLVS = 0x200;

export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;

const NLA_F_NESTED = 0x8000;
export const NLA_TYPE_MASK = 0x3fff;

const encoder = new TextEncoder();

/** What one attribute's fields may take without asking for room; `raw` makes its own. */
const HEADROOM_BYTES = 1024;

/**
 * Writes messages one after another into a buffer that is reused: `start`, fields and attributes in order, `finish`.
 * Lengths of messages and attributes are patched when they are closed.
 */
export class Writer {
  bytes = new Uint8Array(8192);
  view = new DataView(this.bytes.buffer);
  length = 0;
  private messageAt = 0;

  reset(): this {
    this.length = 0;
    return this;
  }

  start(type: number, flags: number, sequence: number): this {
    this.makeRoom(HEADROOM_BYTES);
    this.messageAt = this.length;
    this.view.setUint16(this.length + 4, type, true);
    this.view.setUint16(this.length + 6, flags, true);
    this.view.setUint32(this.length + 8, sequence, true);
    this.view.setUint32(this.length + 12, 0, true);
    this.length += HEADER_BYTES;
    return this;
  }

  finish(): void {
    this.view.setUint32(this.messageAt, this.length - this.messageAt, true);
  }

  private makeRoom(count: number): void {
    if (this.bytes.length - this.length >= count) return;
    const needed = this.length + count, doubled = this.bytes.length * 2;
    const larger = new Uint8Array(needed > doubled ? needed : doubled);
    larger.set(this.bytes);
    this.bytes = larger;
    this.view = new DataView(larger.buffer);
  }

  u8(value: number): this {
    this.view.setUint8(this.length, value);
    this.length += 1;
    return this;
  }

  u16(value: number): this {
    this.view.setUint16(this.length, value, true);
    this.length += 2;
    return this;
  }

  u32(value: number): this {
    this.view.setUint32(this.length, value, true);
    this.length += 4;
    return this;
  }

  u16be(value: number): this {
    this.view.setUint16(this.length, value, false);
    this.length += 2;
    return this;
  }

  u32be(value: number): this {
    this.view.setUint32(this.length, value, false);
    this.length += 4;
    return this;
  }

  u64(value: bigint): this {
    this.view.setBigUint64(this.length, value, true);
    this.length += 8;
    return this;
  }

  u64be(value: bigint): this {
    this.view.setBigUint64(this.length, value, false);
    this.length += 8;
    return this;
  }

  raw(value: Uint8Array): this {
    this.makeRoom(value.length + HEADROOM_BYTES);
    this.bytes.set(value, this.length);
    this.length += value.length;
    return this;
  }

  /** Writes zeros up to the next multiple of four: the buffer is reused and may contain anything. */
  align(): this {
    while (this.length % 4 !== 0) this.u8(0);
    return this;
  }

  /** Begins an attribute and answers its position for `close`; what is written in between is its payload. */
  open(type: number): number {
    this.makeRoom(HEADROOM_BYTES);
    const at = this.length;
    this.view.setUint16(at + 2, type, true);
    this.length = at + 4;
    return at;
  }

  openNest(type: number): number {
    return this.open(type | NLA_F_NESTED);
  }

  close(at: number): this {
    this.view.setUint16(at, this.length - at, true);
    return this.align();
  }

  /** An attribute whose payload is written by `write`. */
  attribute(type: number, write: () => void): this {
    const at = this.open(type);
    write();
    return this.close(at);
  }

  nest(type: number, write: () => void): this {
    return this.attribute(type | NLA_F_NESTED, write);
  }

  /** Text with a terminating NUL (the kernel's NLA_NUL_STRING). */
  text(value: string): this {
    return this.raw(encoder.encode(value)).u8(0);
  }
}

/** A received message. The payload is a view into the receive buffer, which the next datagram overwrites. */
export interface NetlinkMessage {
  type: number;
  flags: number;
  sequence: number;
  payload: Uint8Array;
}

export class MalformedMessage extends Error {
  constructor(what: string) {
    super(`malformed netlink message: ${what}`);
    this.name = "MalformedMessage";
  }
}

/** Calls `visit` for every message in a datagram. */
export function eachMessage(datagram: Uint8Array, visit: (message: NetlinkMessage) => void): void {
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  let at = 0;
  while (at + HEADER_BYTES <= datagram.length) {
    const length = view.getUint32(at, true);
    if (length < HEADER_BYTES || at + length > datagram.length) {
      throw new MalformedMessage(`length ${length} at ${at}`);
    }
    visit({
      type: view.getUint16(at + 4, true),
      flags: view.getUint16(at + 6, true),
      sequence: view.getUint32(at + 8, true),
      payload: datagram.subarray(at + HEADER_BYTES, at + length),
    });
    at += (length + 3) & ~3;
  }
}

/** Calls `visit` for every attribute in `bytes` (a message's payload after its fixed header, or a nest). */
export function eachAttribute(bytes: Uint8Array, visit: (type: number, payload: Uint8Array) => void): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  while (at + 4 <= bytes.length) {
    const length = view.getUint16(at, true);
    if (length < 4 || at + length > bytes.length) throw new MalformedMessage(`attribute length ${length} at ${at}`);
    visit(view.getUint16(at + 2, true) & NLA_TYPE_MASK, bytes.subarray(at + 4, at + length));
    at += (length + 3) & ~3;
  }
}
