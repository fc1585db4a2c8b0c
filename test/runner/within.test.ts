/** What of a long run fits into a time, and that several runs have everything. */
import { expect, test } from "bun:test";
import type { Durations } from "./queue.ts";
import { within } from "./within.ts";

const durations: Durations = Object.fromEntries(
  Array.from(
    { length: 40 },
    (_, at) => [`f${at}`, { here: 10 + at, busy: 10 + at, vm: at % 4 === 0 ? 20 : undefined }],
  ),
);
const runs = Object.keys(durations);
const sum = (taken: readonly string[], of: "busy" | "vm") =>
  taken.reduce((all, run) => all + (durations[run]![of] ?? 0), 0);

test("as much as its processors and its virtual machine do in 60 % of the time, in the given order", () => {
  for (let seed = 1; seed < 50; seed++) {
    const taken = within(runs, durations, { seconds: 200, jobs: 2, seed });
    expect(sum(taken, "busy") + sum(taken, "vm")).toBeLessThanOrEqual(240);
    expect(sum(taken, "vm")).toBeLessThanOrEqual(120);
    expect(sum(taken, "busy") + sum(taken, "vm") > 240 - 80 || sum(taken, "vm") > 120 - 20).toBe(true);
    expect(taken).toEqual(runs.filter((run) => taken.includes(run)));
  }
  expect(within(runs, durations, { seconds: 100_000, jobs: 1, seed: 1 })).toEqual(runs);
  expect(within(runs, durations, { seconds: 2, jobs: 1, seed: 1 })).toHaveLength(1);
});

test("other runs have what one leaves, long ones as often as short ones", () => {
  const times = new Map(runs.map((run) => [run, 0]));
  for (let seed = 1; seed <= 400; seed++) {
    for (const run of within(runs, durations, { seconds: 500, jobs: 2, seed })) times.set(run, times.get(run)! + 1);
  }
  const average = [...times.values()].reduce((sum, one) => sum + one, 0) / runs.length;
  for (const [run, count] of times) expect([run, count > average / 2]).toEqual([run, true]);
});
