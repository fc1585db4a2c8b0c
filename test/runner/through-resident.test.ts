/** The list of what the full run runs a second time. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { matching, root, testFiles } from "./test-files.ts";
import { matchingThroughResident, runOf, runsThroughResident } from "./through-resident.ts";

test("each file is there, and runs once more with a resident", () => {
  expect(runsThroughResident.length).toBeGreaterThan(20);
  expect(new Set(runsThroughResident).size).toBe(runsThroughResident.length);
  for (const name of runsThroughResident) {
    const { file, env } = runOf(name);
    expect([name, existsSync(join(root, file))]).toEqual([`${file} through a resident`, true]);
    expect(env).toEqual({ PATCHBAY_TEST_RESIDENT: "1" });
  }
  expect(runOf("test/kernel/ptp.test.ts")).toEqual({ file: "test/kernel/ptp.test.ts", flags: [], env: {} });
});

test("a PATH means plain runs, the whole name a run through a resident", () => {
  const chosen = (filter: string) => [...matching(testFiles(), [filter]), ...matchingThroughResident([filter])];
  expect(chosen("kernel/ptp")).toEqual(["test/kernel/ptp.test.ts"]);
  expect(chosen("kernel/ptp.test.ts through a resident")).toEqual(["test/kernel/ptp.test.ts through a resident"]);
  expect(chosen("through a resident")).toEqual([...runsThroughResident]);
});
