/** How much of a set is looked at. What is found there, kernel-agrees shows. */
import { expect, test } from "bun:test";
import { known, type KnownBytes } from "../../../src/net/netfilter/known-bytes.ts";
import { lookUp } from "../../../src/net/netfilter/lookup.ts";
import type { RuleSet, SetElement } from "../../../src/net/netfilter/ruleset.ts";

const LENGTH = 20_000;
let looks = 0;

const bytesOf = (number: number) => Uint8Array.of(10, number >> 16, (number >> 8) & 255, number & 255);

function element(number: number, isEnd = false): SetElement {
  const key = bytesOf(number);
  return {
    isEnd,
    isTimed: false,
    get key() {
      looks++;
      return key;
    },
  };
}

function setOf(elements: SetElement[], rest: Partial<RuleSet> = {}): RuleSet {
  return { isInterval: false, isChanging: false, keyLength: 4, parts: [], elements, ...rest };
}

/** Not in the order of their keys, as the kernel has them in a hash table. */
const numbers = Array.from({ length: LENGTH }, (_, at) => (at * 7919) % LENGTH);
const keys = () => setOf(numbers.map((number) => element(4 * number)));
const intervals = () =>
  setOf(numbers.flatMap((number) => [element(4 * number), element(4 * number + 2, true)]), { isInterval: true });

test.each([["keys", keys], ["intervals", intervals]])("a set of %s is put in order once, and searched by halves", (
  _,
  make,
) => {
  const set = make();
  lookUp(set, known(bytesOf(0)));
  looks = 0;
  for (let number = 0; number < 2000; number++) {
    const found = lookUp(set, known(bytesOf(number)))!;
    const isThere = number % 4 < (set.isInterval ? 2 : 1);
    expect([number, found.elements.length > 0 && !found.mayMiss]).toEqual([number, isThere]);
  }
  expect(looks).toBeLessThan(2000 * 100);
});

test("keys of which the beginning is not known are looked for so often, and then nobody knows", () => {
  const set = keys(), answers: (boolean | undefined)[] = [];
  const ending = (number: number): KnownBytes => ({
    value: Uint8Array.of(0, 0, number >> 8, number & 255),
    mask: Uint8Array.of(0, 0, 255, 255),
  });
  lookUp(set, ending(0));
  looks = 0;
  for (let number = 0; number < 2000; number++) answers.push(lookUp(set, ending(number))?.mayMiss);
  expect([answers[0], answers[5], answers.at(-1)]).toEqual([true, true, undefined]);
  // The same key costs nothing.
  expect(lookUp(set, ending(0))).toMatchObject({ mayMiss: true });
  expect(looks).toBeLessThan(LENGTH * 100);
});
