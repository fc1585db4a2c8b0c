/** How many workers a resident has, and when it ends: by a clock of the test's. */
import { expect, test } from "bun:test";
import { Demand } from "../../../src/frontends/resident/demand.ts";
import { IdleLimit } from "../../../src/frontends/resident/idle-limit.ts";

test("more when calls wait for those that are ready, and one less each 30 s without a queue", () => {
  let now = 1000;
  const demand = new Demand({ least: 1, most: 3 }, () => now);
  expect([demand.wanted, demand.settle(), demand.mayGrow]).toEqual([1, Infinity, true]);
  demand.noteQueue(1);
  // The second one is not ready yet.
  demand.noteQueue(1);
  expect(demand.wanted).toBe(2);
  demand.noteQueue(2);
  demand.noteQueue(3);
  expect([demand.wanted, demand.settle()]).toEqual([3, 30_000]);
  now += 29_999;
  expect([demand.settle(), demand.wanted]).toEqual([1, 3]);
  now += 1;
  expect([demand.settle(), demand.wanted]).toEqual([30_000, 2]);
  now += 20_000;
  demand.noteQueue(1);
  now += 20_000;
  expect([demand.settle(), demand.wanted]).toEqual([10_000, 2]);
  now += 10_000;
  expect([demand.settle(), demand.wanted]).toEqual([Infinity, 1]);
});

test("a burst does not wait for one more at a time", () => {
  const demand = new Demand({ least: 1, most: 7 });
  for (const [ready, wanted] of [[1, 2], [1, 2], [2, 4], [3, 4], [4, 7], [7, 7]] as const) {
    demand.noteQueue(ready);
    expect(demand.wanted).toBe(wanted);
  }
});

test("a fixed number stays", () => {
  const demand = new Demand({ least: 2, most: 2 });
  demand.noteQueue(2);
  expect([demand.wanted, demand.settle(), demand.mayGrow]).toEqual([2, Infinity, false]);
});

test("a resident ends when so long nobody has called, and never with 0", () => {
  let now = 0;
  const limit = new IdleLimit(10, () => now), never = new IdleLimit(0, () => now);
  now = 9000;
  limit.note(1);
  now = 18_999;
  limit.note(1);
  expect([limit.isOver, limit.leftMs]).toEqual([false, 1]);
  now = 19_000;
  expect([limit.isOver, never.isOver, never.leftMs]).toEqual([true, false, Infinity]);
  limit.note(2);
  expect(limit.isOver).toBe(false);
});
