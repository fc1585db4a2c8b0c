/**
 * Repeated keys in a JSON text. `JSON.parse` silently keeps the last, which is right nearly everywhere (json.ts); where
 * it is not, this reads the text.
 */
import { foldKey } from "./json.ts";

/** The first key that is repeated in the object under the top-level key `name`. The text must be valid JSON. */
export function repeatedKeyIn(name: string, text: string): string | undefined {
  const wanted = foldKey(name);
  let depth = 0, within = false;
  let seen = new Set<string>();
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    else if (character === '"') {
      const start = at;
      at = closingQuote(text, start);
      if (depth > (within ? 2 : 1) || !isKey(text, at + 1)) continue;
      const key: string = JSON.parse(text.slice(start, at + 1));
      if (depth === 2) {
        if (seen.has(key)) return key;
        seen.add(key);
      } else {
        within = foldKey(key) === wanted;
        if (within) seen = new Set();
      }
    }
  }
  return undefined;
}

function closingQuote(text: string, opening: number): number {
  let at = opening + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}

/** Among the strings of an object, only keys are followed by a colon. */
function isKey(text: string, after: number): boolean {
  let at = after;
  while (text[at] === " " || text[at] === "\t" || text[at] === "\n" || text[at] === "\r") at++;
  return text[at] === ":";
}
