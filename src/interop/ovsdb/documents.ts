/**
 * JSON documents in a stream that nothing separates (RFC 7047, section 4: "JSON-RPC 1.0"). Pure. A document is an object
 * here, and ends with the brace that closes it.
 */
import { fromUtf8 } from "../../ffi/libc.ts";

const QUOTE = 0x22, BACKSLASH = 0x5c, OPEN = 0x7b, CLOSE = 0x7d;
const SPACES: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];

export class Documents {
  private readonly parts: Uint8Array[] = [];
  private depth = 0;
  private isInText = false;
  private isEscaped = false;

  /** The documents that end in these bytes. Throws a SyntaxError for what is no document. */
  add(bytes: Uint8Array): unknown[] {
    const ended: unknown[] = [];
    let start = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (this.isEscaped) this.isEscaped = false;
      else if (this.isInText && byte === BACKSLASH) this.isEscaped = true;
      else if (byte === QUOTE && this.depth > 0) this.isInText = !this.isInText;
      else if (this.isInText) continue;
      else if (byte === OPEN) {
        if (this.depth++ === 0) start = at;
      } else if (byte === CLOSE && this.depth > 0) {
        if (--this.depth > 0) continue;
        this.parts.push(bytes.slice(start, at + 1));
        ended.push(JSON.parse(fromUtf8(Buffer.concat(this.parts.splice(0)))));
        start = at + 1;
      } else if (this.depth === 0 && !SPACES.includes(byte)) throw new SyntaxError("no JSON object");
    }
    if (this.depth > 0) this.parts.push(bytes.slice(start));
    return ended;
  }
}
