/** Random moments and cases of a run can be had again by its seed. */
import { expect, test } from "bun:test";
import { root } from "./test-files.ts";

const script = `import fc from "fast-check";
  import "./test/support/preload.ts";
  import { random, randomBelow } from "./test/support/random.ts";
  const cases = [];
  fc.assert(fc.property(fc.nat(), (one) => void cases.push(one)), { numRuns: 5 });
  console.log(JSON.stringify([random(), random(), randomBelow(1000), ...cases]));`;

function numbers(seed?: string): { said: string; numbers: number[] } {
  const env = { ...process.env, PATCHBAY_TEST_SEED: seed };
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", script], { cwd: root, env });
  return { said: stderr.toString().trim(), numbers: JSON.parse(stdout.toString()) };
}

test("the same seed gives the same numbers, another others", () => {
  const one = numbers("7");
  expect(one.said).toBe("");
  expect(one.numbers).toHaveLength(8);
  expect(numbers("7")).toEqual(one);
  expect(numbers("8")).not.toEqual(one);
});

test("without a seed one is chosen and printed", () => {
  const one = numbers(), [, seed] = /^PATCHBAY_TEST_SEED=(\d+)$/.exec(one.said)!;
  expect(numbers(seed).numbers.slice(0, 3)).toEqual(one.numbers.slice(0, 3));
});
