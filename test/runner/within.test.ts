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
    // Nothing is left that would have had room.
    expect(sum(taken, "busy") + sum(taken, "vm")).toBeGreaterThan(240 - 30);
    expect(taken).toEqual(runs.filter((run) => taken.includes(run)));
  }
  expect(within(runs, durations, { seconds: 100_000, jobs: 1, seed: 1 })).toEqual(runs);
  expect(within(["new", ...runs], durations, { seconds: 2, jobs: 1, seed: 1 })).toEqual(["new"]);
});

test("other runs have what one leaves", () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 40; seed++) {
    for (const run of within(runs, durations, { seconds: 500, jobs: 2, seed })) seen.add(run);
  }
  expect(seen.size).toBe(runs.length);
});
