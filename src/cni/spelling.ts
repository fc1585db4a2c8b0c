/** Finding the name somebody meant. */
import { foldKey } from "./json.ts";

/** The candidate with the fewest edits, if they are few enough for a misspelling; the first of several. */
export function closestName(name: string, candidates: readonly string[]): string | undefined {
  return closest(candidates, (candidate) => editDistance(name, candidate), Math.max(1, Math.floor(name.length / 2)));
}

/**
 * Like `closestName`, for keys and values of configurations. It allows fewer edits; letter case, `_`, `-` and the order
 * of letters do not count.
 */
export function closestKey(name: string, candidates: readonly string[]): string | undefined {
  const plain = (text: string) => foldKey(text).replace(/[_-]/g, "");
  const letters = (text: string) => [...plain(text)].sort().join("");
  const distance = (candidate: string) =>
    letters(candidate) === letters(name) ? 0 : editDistance(plain(name), plain(candidate));
  return closest(candidates, distance, name.length < 4 ? 1 : Math.max(2, Math.floor(name.length / 3)));
}

function closest(
  candidates: readonly string[],
  distanceTo: (candidate: string) => number,
  most: number,
): string | undefined {
  const best = candidates.map((candidate) => ({ candidate, distance: distanceTo(candidate) }))
    .sort((one, other) => one.distance - other.distance)[0];
  return best !== undefined && best.distance <= most ? best.candidate : undefined;
}

/** Insertions, deletions, replacements and swaps of two neighbours, one row at a time. */
export function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index), before = row;
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1, isSwap ? before[j - 2]! + 1 : Infinity));
    }
    before = row;
    row = next;
  }
  return row[other.length]!;
}
