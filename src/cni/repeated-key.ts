/**
 * Keys that stand twice in one object of a JSON text. `JSON.parse` keeps the last and says nothing, which is right for
 * nearly everything here (json.ts); where it is not, the text itself has to be read.
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

/** Of the strings within an object, only keys have a colon behind them. */
function isKey(text: string, after: number): boolean {
  let at = after;
  while (text[at] === " " || text[at] === "\t" || text[at] === "\n" || text[at] === "\r") at++;
  return text[at] === ":";
}
