/** The names of demands, by which reports, docs/conformance.md and the wrong plugins call them. */
import { expect, test } from "bun:test";
import { demands } from "../../src/conformance/demands/table.ts";
import { wrongPlugins } from "../support/conformance-wrong-plugins.ts";

test("names are in kebab-case and each is one demand's", () => {
  const names = demands.map(({ name }) => name);
  expect(names.filter((name) => !/^[a-z]+(-[a-z]+)*$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});

test("every demand has a plugin that does not meet it", () => {
  const unmet = new Set(Object.values(wrongPlugins).flatMap(({ fails }) => fails));
  expect([...unmet].sort()).toEqual(demands.map(({ name }) => name).sort());
});
