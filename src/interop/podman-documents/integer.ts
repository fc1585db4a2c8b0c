/** Integers from text, refused in the words of Rust's library, which netavark's users know. */

/** Returns the integer, or why the text is not one. A plus may precede it, and a minus where `least` is negative. */
export function readInteger(text: string, least: number, most: number): number | string {
  if (text === "") return "cannot parse integer from empty string";
  const form = least < 0 ? /^[+-]?[0-9]+$/ : /^\+?[0-9]+$/;
  if (!form.test(text)) return "invalid digit found in string";
  const value = Number(text);
  if (value > most) return "number too large to fit in target type";
  return value < least ? "number too small to fit in target type" : value;
}
