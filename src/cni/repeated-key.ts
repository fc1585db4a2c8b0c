/**
 * Repeated keys in a JSON text, and the order of keys. `JSON.parse` silently keeps the last of repeated ones and puts
 * keys that look like numbers first, which is right nearly everywhere (json.ts); where it is not, this reads the text.
 */
import { foldKey } from "./json.ts";

/** The first key that is repeated in the object under the top-level key `name`. The text must be valid JSON. */
export function repeatedKeyIn(name: string, text: string): string | undefined {
  for (const keys of keysIn(name, text)) {
    const seen = new Set<string>();
    for (const key of keys) {
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}

/** The keys, in the order of the text, of each object under a top-level key `name`. The text must be valid JSON. */
export function keysIn(name: string, text: string): string[][] {
  const wanted = foldKey(name), found: string[][] = [];
  let depth = 0, within = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    else if (character === '"') {
      const start = at;
      at = closingQuote(text, start);
      if (depth > (within ? 2 : 1) || !isKey(text, at + 1)) continue;
      const key: string = JSON.parse(text.slice(start, at + 1));
      if (depth === 2) found.at(-1)!.push(key);
      else {
        within = foldKey(key) === wanted;
        if (within) found.push([]);
      }
    }
  }
  return found;
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
