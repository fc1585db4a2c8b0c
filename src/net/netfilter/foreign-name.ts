/** Names and comments of others: a terminal would obey control characters, and readers take a blank for the end. */

/** The kernel's names have 255 bytes at most, and nobody reads them all. */
const MOST_CHARACTERS = 128;
const PLAIN = /^[\p{L}\p{N}_.:@+*/-]+$/u;
/** Control and format characters, such as those that turn the direction of writing, and what is no character. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** The name as it is, or in quotation marks and escaped as in JSON. */
export function foreignName(name: string): string {
  const short = cutTo(name, MOST_CHARACTERS);
  return PLAIN.test(name) ? short : quotedText(short);
}

export function quotedText(text: string): string {
  return visible(JSON.stringify(text));
}

/** What a terminal would obey, or nobody would see, is escaped. */
export function visible(text: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(UNSEEN, (character) => character.replace(/[^]/g, escaped));
}

/** With an ellipsis in the place of the rest. */
export function cutTo(text: string, characters: number): string {
  const all = [...text];
  return all.length <= characters ? text : `${all.slice(0, characters - 1).join("")}…`;
}
