/** When a limit of `npm run pod-start` is passed: only beyond it, and for each engine by itself. */
import { expect, test } from "bun:test";
import { beyond } from "../../../bench/pod-start/limits.ts";
import { type EngineRows, rowsOf } from "../../../bench/pod-start/report.ts";

/** An engine that starts containers in that many milliseconds. */
function engine(name: string, none: number, ours: number, theirs?: number): EngineRows {
  const samples = (ms: number) => ({ start: [ms], end: [ms], left: 0 });
  const rows = rowsOf({
    none: samples(none),
    ours: samples(ours),
    ...theirs !== undefined && { theirs: samples(theirs) },
  });
  return {
    engine: name,
    version: "1",
    byResident: false,
    theirs: theirs === undefined ? undefined : "/theirs",
    rows,
  };
}

test("a row has containers a second, and the network's share of a start", () => {
  const { ours, none, theirs } = engine("e", 150, 200).rows;
  expect([ours.perSecond, ours.network.start, ours.share]).toEqual([5, 50, 0.25]);
  expect([none.perSecond, none.share, theirs]).toEqual([1000 / 150, 0, undefined]);
});

test("a ratio is passed only beyond it, by each engine by itself", () => {
  const engines = [engine("slow", 100, 300, 200), engine("equal", 100, 200, 200)];
  expect(beyond(engines, {})).toEqual([]);
  expect(beyond(engines, { ratio: 1.5 })).toEqual([]);
  expect(beyond(engines, { ratio: 1 })).toEqual([
    "slow starts a container with ours in 300 ms, 1.50 of the 200 ms with theirs; --limit is 1",
  ]);
  expect(beyond(engines, { ratio: 0 })).toHaveLength(2);
});

test("milliseconds are a limit without theirs as well", () => {
  expect(beyond([engine("alone", 100, 300)], { ms: 300 })).toEqual([]);
  expect(beyond([engine("alone", 100, 300)], { ms: 299 })).toEqual([
    "alone starts a container with ours in 300 ms; --limit-ms is 299",
  ]);
});
