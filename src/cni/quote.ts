/**
 * Text quoted as Go's %q does, because messages of the reference library carry it and tools read them.
 */

const short: Record<string, string> = {
  '"': '\\"',
  "\\": "\\\\",
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

/** Keeps what Go counts as printable: letters, marks, numbers, punctuation, symbols and the plain space. */
export function goQuote(text: string): string {
  const quoted = text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, (character) => {
    const code = character.codePointAt(0)!;
    const hex = code.toString(16);
    return short[character] ??
      (code < 0x80
        ? `\\x${hex.padStart(2, "0")}`
        : code < 0x10000
        ? `\\u${hex.padStart(4, "0")}`
        : `\\U${hex.padStart(8, "0")}`);
  });
  return `"${quoted}"`;
}
