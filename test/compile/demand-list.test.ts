/** docs/conformance.md has every demand, once, with how strongly and of whom it is asked. */
import { expect, test } from "bun:test";
import { withDemands } from "../../compile/demand-list.ts";
import type { SpecDemand } from "../../src/conformance/demand.ts";

const page = "# Page\n\nBefore.\n\n### Of every plugin\n\n- an older list\n\n## After\n\nText.\n";
const check = () => {};

function listOf(...demands: Partial<SpecDemand>[]): string {
  const filled = demands.map((demand): SpecDemand => ({
    ...{ name: "a-demand", sentence: "It answers", section: "Section 2", strength: "must", since: "0.1.0", check },
    ...demand,
  }));
  return withDemands(page, filled);
}

test("a list of those of every plugin and one of the others take the place of the older list", () => {
  expect(listOf({ kinds: ["main", "ipam", "meta"], name: "of-known" }, { name: "of-every" })).toBe(
    "# Page\n\nBefore.\n\n### Of every plugin\n\n- `of-every`: It answers (must)\n\n" +
      "### Of plugins of a known kind\n\n- `of-known`: It answers (must)\n\n## After\n\nText.\n",
  );
});

test.each([
  [{ strength: "engines" as const }, "(engines)"],
  [{ kinds: ["main", "ipam"] as const }, "(must; main, ipam)"],
  [{ sentence: "word ".repeat(30).trim() }, "word word word\n  word word word"],
])("%j is told", (demand, text) => {
  expect(listOf(demand)).toContain(text);
});

test("a page without a place for the list is refused", () => {
  expect(() => withDemands("# Page\n", [])).toThrow('no heading "### Of every plugin"');
});
