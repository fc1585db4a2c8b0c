/** Totals of a run: a test that is skipped here counts as skipped unless it ran in the virtual machine. */
import { expect, test } from "bun:test";
import type { TestCase } from "./junit.ts";
import { type Results, total } from "./report.ts";

const one = (name: string, outcome: TestCase["outcome"]): TestCase => ({
  file: "a.test.ts",
  name,
  outcome,
  seconds: 0,
});

function results(here: TestCase[], there: TestCase[]): Results {
  const counts = (cases: TestCase[]) => {
    const count = (outcome: TestCase["outcome"]) => cases.filter((one) => one.outcome === outcome).length;
    return { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
  };
  const common = { processorSeconds: 0, output: "" };
  return {
    files: [{ file: "a.test.ts", seconds: 0, cases: here, ...common, ...counts(here) }],
    vm: there.length === 0 ? [] : [{ cases: there, ...common, ...counts(there) }],
  };
}

const here = [one("x", "passed"), one("y", "skipped"), one("z", "skipped")];

test("what the virtual machine ran is not skipped", () => {
  expect(total(results(here, [one("y", "passed"), one("z", "passed")]), true))
    .toEqual({ passed: 3, failed: 0, skipped: 0 });
  expect(total(results(here, [one("y", "passed"), one("z", "failed")]), true))
    .toEqual({ passed: 2, failed: 1, skipped: 0 });
});

test("a run with the virtual machine fails when a test ran nowhere", () => {
  expect(total(results(here, [one("y", "passed"), one("z", "skipped")]), true))
    .toEqual({ passed: 2, failed: 1, skipped: 1 });
  expect(total(results(here, []), true)).toEqual({ passed: 1, failed: 1, skipped: 2 });
});

test("a run without it counts what is skipped", () => {
  expect(total(results(here, []), false)).toEqual({ passed: 1, failed: 0, skipped: 2 });
});
