/** A misspelt word is recognised, and a different word is not taken for a misspelt one. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { closestName, editDistance } from "../../src/cni/spelling.ts";

const names = ["add", "check", "del", "gc", "status", "install", "version"];

const meant: [string, string | undefined][] = [
  ["ad", "add"],
  ["delete", "del"],
  ["chekc", "check"],
  ["instal", "install"],
  ["g", "gc"],
  ["statsu", "status"],
  ["frobnicate", undefined],
  ["xyz", undefined],
];

for (const [typed, name] of meant) {
  test(`"${typed}" is ${name ?? "nothing we know"}`, () => expect(closestName(typed, names)).toBe(name));
}

test("two neighbours that are swapped are one slip, as one letter is", () => {
  expect(closestName("fornt", ["first", "front"])).toBe("front");
  expect(closestName("ewb", ["eb", "web"])).toBe("eb");
  expect([editDistance("ab", "ba"), editDistance("abcd", "badc"), editDistance("abc", "cba")]).toEqual([1, 2, 2]);
});

test("the distance is zero only to the same word, the same in both directions, and at most one for each slip", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 6 });
  fc.assert(fc.property(word, word, word, (a, b, c) => {
    expect(editDistance(a, b)).toBe(editDistance(b, a));
    expect(editDistance(a, b) === 0).toBe(a === b);
    expect(editDistance(a, b)).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
    expect(editDistance(a, `${a}x`)).toBe(1);
    expect(editDistance(`${a}xy${c}`, `${a}yx${c}`)).toBe(1);
  }));
});
