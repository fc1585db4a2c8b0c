/** The names of demands, by which reports and docs/conformance.md call them. */
import { expect, test } from "bun:test";
import { demands } from "../../src/conformance/demands/table.ts";

test("names are in kebab-case and each is one demand's", () => {
  const names = demands.map(({ name }) => name);
  expect(names.filter((name) => !/^[a-z]+(-[a-z]+)*$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});
