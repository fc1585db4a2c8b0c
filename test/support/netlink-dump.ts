/** Dumps of netlink as they come: messages and their attributes (netlink(7)). Not by the program's own netlink. */
import { check, lastErrno, libc } from "../../src/ffi/libc.ts";

/** Attributes by number: `true` is left out, a table is for those nested in it. */
export interface LeftOut {
  readonly [attribute: number]: true | LeftOut;
}

export interface Attribute {
  type: number;
  start: number;
  end: number;
}

export function* attributesIn(bytes: Uint8Array, from: number, to: number): Generator<Attribute> {
  for (let start = from; start + 4 <= to;) {
    const length = bytes[start]! | bytes[start + 1]! << 8;
    const type = (bytes[start + 2]! | bytes[start + 3]! << 8) & 0x3fff;
    if (length < 4) return;
    yield { type, start, end: start + length };
    start += align(length);
  }
}

export function align(length: number): number {
  return (length + 3) & ~3;
}

export function leaveOut(bytes: Uint8Array, from: number, to: number, table: LeftOut): void {
  for (const { type, start, end } of attributesIn(bytes, from, to)) {
    const found = table[type];
    if (found === true) bytes.fill(0, start + 4, end);
    else if (found !== undefined) leaveOut(bytes, start + 4, end, found);
  }
}

const AF_NETLINK = 16, SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const REQUEST_DUMP = 0x301, INTERRUPTED = 0x10;
const NLMSG_ERROR = 2, NLMSG_DONE = 3;
const HEADER_BYTES = 16;

/** What was dumped changed meanwhile, and something may be missing. */
export class InterruptedDump extends Error {}

/** For dumps only. Where the kernel lacks what is asked for, there is nothing to dump. */
export class DumpSocket {
  readonly #fd: number;

  constructor(protocol: number) {
    this.#fd = libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol);
    if (this.#fd < 0 && lastErrno() !== EPROTONOSUPPORT) check("socket", this.#fd);
  }

  /** `each` gets whole messages, which it may change. */
  dump(
    type: number,
    question: Uint8Array,
    familyHeaderBytes: number,
    leftOut: LeftOut,
    each: (message: Uint8Array) => void,
  ): void {
    if (this.#fd < 0) return;
    const request = new Uint8Array(HEADER_BYTES + question.length), view = new DataView(request.buffer);
    view.setUint32(0, request.length, true);
    view.setUint16(4, type, true);
    view.setUint16(6, REQUEST_DUMP, true);
    request.set(question, HEADER_BYTES);
    check("sendto", Number(libc.sendto(this.#fd, request, request.length, 0, null, 0)));
    for (;;) {
      const received = check("recvfrom", Number(libc.recvfrom(this.#fd, buffer, buffer.length, 0, null, null)));
      for (let at = 0; at + HEADER_BYTES <= received;) {
        const length = bufferView.getUint32(at, true), answer = bufferView.getUint16(at + 4, true);
        if ((bufferView.getUint16(at + 6, true) & INTERRUPTED) !== 0) throw new InterruptedDump();
        if (answer === NLMSG_DONE || answer === NLMSG_ERROR) return;
        const message = buffer.subarray(at, at + length);
        // The sender's port.
        message.fill(0, 12, 16);
        leaveOut(message, HEADER_BYTES + align(familyHeaderBytes), length, leftOut);
        each(message);
        at += align(length);
      }
    }
  }

  close(): void {
    if (this.#fd >= 0) libc.close(this.#fd);
  }
}

const EPROTONOSUPPORT = 93;
const buffer = new Uint8Array(64 * 1024), bufferView = new DataView(buffer.buffer);
