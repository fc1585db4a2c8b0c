/** Random moments and cases of a run can be had again by its seed. */
import { expect, test } from "bun:test";
import { root } from "./test-files.ts";

const script = `import fc from "fast-check";
  import "./test/support/preload.ts";
  import { random, randomBelow } from "./test/support/random.ts";
  const cases = [];
  fc.assert(fc.property(fc.nat(), (one) => void cases.push(one)), { numRuns: 5 });
  console.log(JSON.stringify([random(), random(), randomBelow(1000), ...cases]));`;

function numbers(seed?: string): string[] {
  const env = { ...process.env, PATCHBAY_TEST_SEED: seed };
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { cwd: root, env });
  return stdout.toString().trim().split("\n");
}

test("the same seed gives the same numbers, another others", () => {
  const [one] = numbers("7");
  expect(JSON.parse(one!)).toHaveLength(8);
  expect(numbers("7")).toEqual([one!]);
  expect(numbers("8")).not.toEqual([one!]);
});

test("without a seed one is chosen and printed", () => {
  const [said, one] = numbers();
  expect(said).toMatch(/^PATCHBAY_TEST_SEED=\d+$/);
  const again = JSON.parse(numbers(said!.split("=")[1])[0]!);
  expect(again.slice(0, 3)).toEqual(JSON.parse(one!).slice(0, 3));
});
