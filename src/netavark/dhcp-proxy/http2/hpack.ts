/** Header fields as HTTP/2 packs them: RFC 7541. Pure. */
import { fromUtf8, utf8 } from "../../../ffi/libc.ts";
import { unpacked } from "./huffman.ts";
import { ProtocolError } from "./protocol-error.ts";

export type Field = readonly [name: string, value: string];

/** Of a table, in bytes, by section 4.1; we announce no other size. */
const TABLE_BYTES = 4096, ENTRY_BYTES = 32;
const MOST_FIELDS = 128;

/** Appendix A, from index 1 on. */
const fixed: readonly Field[] = `
:authority
:method: GET
:method: POST
:path: /
:path: /index.html
:scheme: http
:scheme: https
:status: 200
:status: 204
:status: 206
:status: 304
:status: 400
:status: 404
:status: 500
accept-charset
accept-encoding: gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate
`.trim().split("\n").map((line) => {
  const [, name = "", value = ""] = /^(:?[^:]+)(?:: (.*))?$/.exec(line)!;
  return [name, value];
});

/** What one side of a connection has sent so far says how to read what comes next. */
export class HeaderDecoder {
  private readonly recent: Field[] = [];
  private size = 0;
  private limit = TABLE_BYTES;

  decode(block: Uint8Array): Field[] {
    const reader = new Reader(block), fields: Field[] = [];
    while (!reader.isAtEnd) {
      const first = reader.peek();
      if ((first & 0xe0) === 0x20) {
        this.limit = reader.integer(5);
        if (this.limit > TABLE_BYTES) throw new ProtocolError(`a table of ${this.limit} bytes for header fields`);
        this.shrink();
        continue;
      }
      if (fields.length === MOST_FIELDS) throw new ProtocolError(`more than ${MOST_FIELDS} header fields`);
      if ((first & 0x80) !== 0) {
        fields.push(this.entry(reader.integer(7)));
        continue;
      }
      const isKept = (first & 0x40) !== 0, index = reader.integer(isKept ? 6 : 4);
      const field: Field = [index === 0 ? reader.text() : this.entry(index)[0], reader.text()];
      fields.push(field);
      if (isKept) this.keep(field);
    }
    return fields;
  }

  private entry(index: number): Field {
    const field = index <= fixed.length ? fixed[index - 1] : this.recent[index - fixed.length - 1];
    if (field === undefined) throw new ProtocolError(`a header field of index ${index}`);
    return field;
  }

  private keep(field: Field): void {
    this.recent.unshift(field);
    this.size += bytesOf(field);
    this.shrink();
  }

  private shrink(): void {
    while (this.size > this.limit) this.size -= bytesOf(this.recent.pop()!);
  }
}

function bytesOf([name, value]: Field): number {
  return utf8(name).length + utf8(value).length + ENTRY_BYTES;
}

class Reader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.at === this.bytes.length;
  }

  peek(): number {
    return this.bytes[this.at]!;
  }

  private next(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new ProtocolError("header fields that end too early");
    return byte;
  }

  /** Section 5.1: in the last `bits` bits of a byte, or those and more bytes. */
  integer(bits: number): number {
    const most = 2 ** bits - 1;
    let value = this.next() & most;
    if (value < most) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.next();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new ProtocolError("a number of too many bytes in header fields");
  }

  text(): string {
    if (this.isAtEnd) throw new ProtocolError("header fields that end too early");
    const isPacked = (this.peek() & 0x80) !== 0, length = this.integer(7);
    if (this.at + length > this.bytes.length) throw new ProtocolError("header fields that end too early");
    const bytes = this.bytes.subarray(this.at, this.at += length);
    return fromUtf8(isPacked ? unpacked(bytes) : bytes);
  }
}

/** Plain texts that no table remembers. */
export function encodeFields(fields: readonly Field[]): Uint8Array {
  const bytes: number[] = [];
  for (const field of fields) {
    bytes.push(0);
    for (const part of field) {
      const text = utf8(part);
      pushLength(bytes, text.length);
      bytes.push(...text);
    }
  }
  return new Uint8Array(bytes);
}

function pushLength(bytes: number[], length: number): void {
  const most = 127;
  if (length < most) return void bytes.push(length);
  bytes.push(most);
  let left = length - most;
  for (; left >= 128; left >>= 7) bytes.push((left & 0x7f) | 0x80);
  bytes.push(left);
}
