/** Texts in header fields that are packed by the Huffman code of RFC 7541, appendix B. Pure. */
import { ProtocolError } from "./protocol-error.ts";

/** The length of each byte's code, in digits to the base 36. Codes of a length follow one another, in the order of bytes. */
const LENGTHS = "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca" +
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds" +
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq";
const LONGEST = 30, EOS = 256;

/** Of each length: its first code, and where its bytes begin in `inOrder`. */
interface Table {
  first: number[];
  start: number[];
  inOrder: number[];
}
let table: Table | undefined;

export function unpacked(bytes: Uint8Array): Uint8Array {
  const { first, start, inOrder } = table ??= makeTable(), found: number[] = [];
  let code = 0, length = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1);
      length++;
      const at = code - first[length]!, count = start[length + 1]! - start[length]!;
      if (at < count) {
        const symbol = inOrder[start[length]! + at]!;
        if (symbol === EOS) throw new ProtocolError("a text with an end in it");
        found.push(symbol);
        code = length = 0;
      } else if (length === LONGEST) throw new ProtocolError("a text of no code");
    }
  }
  // The rest of the last byte is filled with ones.
  if (length > 7 || code !== 2 ** length - 1) throw new ProtocolError("a text that ends within a code");
  return new Uint8Array(found);
}

function makeTable(): Table {
  const lengths = [...LENGTHS].map((digit) => parseInt(digit, 36)).concat(LONGEST);
  const inOrder: number[] = [], first = [0], start = [0];
  let code = 0;
  for (let length = 1; length <= LONGEST; length++) {
    first.push(code);
    start.push(inOrder.length);
    lengths.forEach((each, symbol) => each === length && inOrder.push(symbol));
    code = (code + inOrder.length - start[length]!) * 2;
  }
  start.push(inOrder.length);
  return { first, start, inOrder };
}
