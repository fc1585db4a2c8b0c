/** What noticed a change, as Bun's output tells it. */
import { expect, test } from "bun:test";
import { firstFailed } from "./trial.ts";

test("the first test that failed; a hook has no name, and whoever died says nothing", () => {
  const output = (...lines: string[]) => ["bun test v1", "", ...lines, "", " 1 fail"].join("\n");
  expect(firstFailed(output("(pass) one [1.00ms]", "(fail) two > [3] [12.34ms]", "(fail) four [1ms]"))).toBe(
    "two > [3]",
  );
  expect(firstFailed(output("(fail) two"))).toBe("two");
  expect(firstFailed(output("(fail) (unnamed) [146.58ms]"))).toBeUndefined();
  expect(firstFailed(output("Segmentation fault"))).toBeUndefined();
});
