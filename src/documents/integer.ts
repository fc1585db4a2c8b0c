/** Integers from text, refused in the words of Rust's library, which netavark's users know. */

/** The integer, or why the text is none. A sign may stand before it where `least` is negative, a plus always. */
export function readInteger(text: string, least: number, most: number): number | string {
  if (text === "") return "cannot parse integer from empty string";
  const form = least < 0 ? /^[+-]?[0-9]+$/ : /^\+?[0-9]+$/;
  if (!form.test(text)) return "invalid digit found in string";
  const value = Number(text);
  if (value > most) return "number too large to fit in target type";
  return value < least ? "number too small to fit in target type" : value;
}
