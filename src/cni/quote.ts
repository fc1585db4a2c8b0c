/** Quotes text like Go's %q, which messages of the reference library contain and tools parse. */

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

/** Escapes all but Go's printable characters: letters, marks, numbers, punctuation, symbols and the space. */
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
