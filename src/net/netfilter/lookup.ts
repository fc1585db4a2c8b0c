/** What a set can yield for a key of which not everything is known. */
import {
  both,
  type Certainty,
  compare,
  isAtLeast,
  isAtMost,
  isEqual,
  isKnown,
  type KnownBytes,
  not,
  slice,
} from "./known-bytes.ts";
import type { RuleSet, SetElement } from "./ruleset.ts";

export interface Found {
  /** Elements of which one is found. */
  elements: readonly SetElement[];
  /** Whether there may be none. */
  mayMiss: boolean;
}

export function lookUp(set: RuleSet, key: KnownBytes): Found {
  const others = set.elements.filter((element) => element.key === undefined);
  const found = set.isInterval && set.parts.length === 0 ? inIntervals(set, key) : amongKeys(set, key);
  if (!found.mayMiss || others.length === 0) return found;
  return { elements: [...found.elements, ...others], mayMiss: false };
}

function amongKeys({ elements, parts, isInterval }: RuleSet, key: KnownBytes): Found {
  const possible: SetElement[] = [];
  let mayMiss = true;
  for (const element of elements) {
    if (element.key === undefined) continue;
    const answer = isInterval ? isWithin(element, parts, key) : isEqual(key, element.key);
    if (answer === "no") continue;
    possible.push(element);
    if (answer === "yes" && !element.isTimed) mayMiss = false;
  }
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
    at += (length + 3) & ~3;
  }
  return answer;
}

/** The interval that begins at or below the key, unless an end stands between. */
function inIntervals({ elements, keyLength }: RuleSet, key: KnownBytes): Found {
  const marks = elements.filter((element) => element.key !== undefined).sort(byKey);
  const whole = slice(key, 0, keyLength), possible: SetElement[] = [];
  let mayMiss = isKnown(whole) || marks.length === 0 || isAtLeast(whole, marks[0]!.key!) !== "yes";
  for (const [index, mark] of marks.entries()) {
    const next = marks[index + 1]?.key;
    const isBelow = next === undefined ? "yes" : not(isAtLeast(whole, next));
    const answer = both(isAtLeast(whole, mark.key!), isBelow);
    if (answer === "no") continue;
    if (mark.isEnd) mayMiss = true;
    else possible.push(mark);
    if (answer === "yes") return { elements: possible, mayMiss: mark.isEnd || mark.isTimed };
    if (mark.isTimed) mayMiss = true;
  }
  return { elements: possible, mayMiss: mayMiss || possible.length === 0 };
}

/** Where one interval ends and the next begins, the beginning counts. */
function byKey(left: SetElement, right: SetElement): number {
  return compare(left.key!, right.key!) || Number(right.isEnd) - Number(left.isEnd);
}
