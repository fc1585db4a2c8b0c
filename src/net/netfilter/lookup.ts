/** What a set can yield for a key of which not everything is known. */
import {
  both,
  type Certainty,
  compare,
  highest,
  isAtLeast,
  isAtMost,
  isEqual,
  isKnown,
  type KnownBytes,
  lowest,
  not,
  slice,
  textOf,
} from "./known-bytes.ts";
import type { RuleSet, SetElement } from "./ruleset.ts";

export interface Found {
  /** Elements of which one is found; of very many, the first. */
  elements: readonly SetElement[];
  /** Whether there may be none. */
  mayMiss: boolean;
}

/** Nobody follows more. */
export const MOST_FOUND = 1024;

/** Undefined when too many elements had to be looked at, for this key and the ones before. */
export function lookUp(set: RuleSet, key: KnownBytes): Found | undefined {
  const index = indexOf(set), { others, intervals } = index, text = textOf(key), before = index.answers.get(text);
  if (before !== undefined) return before;
  const { left } = index;
  if (left <= 0) return undefined;
  const found = intervals ? inIntervals(set, index, key) : amongKeys(set, index, key);
  const answer = !found.mayMiss || others.length === 0
    ? found
    : { elements: [...found.elements, ...others], mayMiss: false };
  if (left - index.left > WORTH_KEEPING) index.answers.set(text, answer);
  return answer;
}

/** Made once for each set: many rules ask one. */
interface Index {
  /** By their keys. */
  marks: SetElement[];
  /** Without a key. */
  others: SetElement[];
  /** Marks are where intervals begin and end. */
  intervals: boolean;
  /** For keys that took long. */
  answers: Map<string, Found>;
  /** How many elements may still be looked at. */
  left: number;
}

const indexes = new WeakMap<RuleSet, Index>();
const MOST_SEEN = 1_000_000, MOST_OFTEN = 8, WORTH_KEEPING = 16;

function indexOf(set: RuleSet): Index {
  return indexes.getOrInsertComputed(set, ({ elements, isInterval, parts }) => {
    const marks = elements.filter(({ key }) => key !== undefined).sort(byKey);
    return {
      marks,
      others: elements.filter(({ key }) => key === undefined),
      intervals: isInterval && parts.length === 0,
      answers: new Map(),
      left: MOST_SEEN + MOST_OFTEN * marks.length,
    };
  });
}

/** Where one interval ends and the next begins, the beginning counts. */
export function byKey(left: SetElement, right: SetElement): number {
  return compare(left.key!, right.key!) || Number(right.isEnd) - Number(left.isEnd);
}

/** How many marks have keys that are less than this one; with `orSame`, or the same. */
function countBelow(marks: readonly SetElement[], key: Uint8Array, orSame: boolean): number {
  let from = 0, to = marks.length;
  while (from < to) {
    const middle = (from + to) >> 1, difference = compare(marks[middle]!.key!, key);
    if (difference < 0 || (orSame && difference === 0)) from = middle + 1;
    else to = middle;
  }
  return from;
}

function amongKeys({ isInterval, parts, keyLength }: RuleSet, index: Index, key: KnownBytes): Found {
  const whole = slice(key, 0, keyLength), possible: SetElement[] = [], { marks } = index;
  // An interval of parts may begin anywhere below.
  const from = isInterval ? 0 : countBelow(marks, lowest(whole), false), to = countBelow(marks, highest(whole), true);
  let mayMiss = true;
  for (let at = from; at < to; at++) {
    const element = marks[at]!;
    const answer = isInterval ? isWithin(element, parts, key) : isEqual(key, element.key!);
    if (answer === "no") continue;
    if (possible.length < MOST_FOUND) possible.push(element);
    if (answer === "yes" && !element.isTimed) mayMiss = false;
  }
  index.left -= to - from;
  // Keys differ, so the one that is there for certain is the one that is found, unless parts' intervals overlap.
  return { elements: possible, mayMiss };
}

function isWithin(
  { key: first, keyEnd: last = first }: SetElement,
  parts: readonly number[],
  key: KnownBytes,
): Certainty {
  let answer: Certainty = "yes", at = 0;
  for (const length of parts) {
    const part = slice(key, at, length);
    const above = isAtLeast(part, first!.subarray(at, at + length));
    answer = both(answer, both(above, isAtMost(part, last!.subarray(at, at + length))));
    if (answer === "no") return answer;
    at += (length + 3) & ~3;
  }
  return answer;
}

/** The interval that begins at or below the key, unless an end stands between. */
function inIntervals({ keyLength }: RuleSet, index: Index, key: KnownBytes): Found {
  const whole = slice(key, 0, keyLength), possible: SetElement[] = [], { marks } = index;
  const from = Math.max(countBelow(marks, lowest(whole), true) - 1, 0);
  let mayMiss = isKnown(whole) || marks.length === 0 || isAtLeast(whole, marks[0]!.key!) !== "yes";
  for (let at = from; at < marks.length; at++, index.left--) {
    const mark = marks[at]!, next = marks[at + 1]?.key, isAbove = isAtLeast(whole, mark.key!);
    if (isAbove === "no") break;
    const answer = both(isAbove, next === undefined ? "yes" : not(isAtLeast(whole, next)));
    if (answer === "no") continue;
    if (mark.isEnd) mayMiss = true;
    else if (possible.length < MOST_FOUND) possible.push(mark);
    if (answer === "yes") return { elements: possible, mayMiss: mark.isEnd || mark.isTimed };
    if (mark.isTimed) mayMiss = true;
  }
  return { elements: possible, mayMiss: mayMiss || possible.length === 0 };
}
