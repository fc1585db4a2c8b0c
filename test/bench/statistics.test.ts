/** The benchmark's median, percentiles and shuffling. */
import { expect, test } from "bun:test";
import { shuffled, summarise } from "../../bench/statistics.ts";

test("summarise() returns the median and the 10th and 90th percentiles, whatever the order of the samples", () => {
  const samples = shuffled(Array.from({ length: 101 }, (_, index) => index));
  expect(summarise(samples)).toEqual({ runs: 101, median: 50, p10: 10, p90: 90 });
  expect(summarise([7])).toEqual({ runs: 1, median: 7, p10: 7, p90: 7 });
});

test("shuffled() keeps every item and does not change its argument", () => {
  const items = Object.freeze(["a", "b", "c", "d"]);
  expect(shuffled(items).toSorted()).toEqual([...items]);
});

test("shuffled() lets every item come first about as often", () => {
  const firsts = new Map<string, number>();
  for (let round = 0; round < 4000; round++) {
    const [first] = shuffled(["a", "b", "c", "d"]);
    firsts.set(first!, (firsts.get(first!) ?? 0) + 1);
  }
  for (const count of firsts.values()) expect(Math.abs(count - 1000)).toBeLessThan(250);
});
