/** `npm run check` passes: types, lint, format, generated files, structure. */
import { expect, test } from "bun:test";
import { check, checks } from "../../compile/check.ts";

for (const name of Object.keys(checks)) {
  test(`npm run check: ${name}`, async () => {
    const { passed, output } = await check(name);
    expect(passed ? "" : output).toBe("");
  }, 300_000);
}
