/** docs/conformance.md lists every demand as it is in the table of demands. */
import { expect, test } from "bun:test";
import { demands } from "../../src/conformance/demands/table.ts";
import { rowsBelow } from "../support/conformance-page.ts";

test("the page's table has every demand, with its sentence, section, strength, version and kinds", () => {
  const wanted = demands.map(({ name, sentence, section, strength, since, kinds }) => [
    `\`${name}\``,
    `${sentence} (${section})`,
    strength,
    since,
    kinds?.join(", ") ?? "every plugin",
  ]);
  expect(rowsBelow("What is asked")).toEqual(wanted);
});

test("names are in kebab-case and each is one demand's", () => {
  const names = demands.map(({ name }) => name);
  expect(names.filter((name) => !/^[a-z]+(-[a-z]+)*$/.test(name))).toEqual([]);
  expect(new Set(names).size).toBe(names.length);
});
