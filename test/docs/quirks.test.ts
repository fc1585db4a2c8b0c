/** docs/quirks/: every quirk has a name of its own and says what is done here, and every plugin has a page. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pluginNames } from "../../src/plugins/table.ts";
import { readQuirks } from "../support/quirks.ts";

const index = readFileSync(resolve(import.meta.dir, "../../docs/quirks/README.md"), "utf8");
const quirks = readQuirks();

test("names are unique and spelt as names", () => {
  const names = quirks.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(200);
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  expect(names.filter((name) => !/^[a-z0-9]+(?:[.-][a-z0-9]+)+$/.test(name))).toEqual([]);
});

test("each says what is done here", () => {
  expect(quirks.filter(({ text }) => !/^- (?:Here|Go and here): /m.test(text)).map(({ name }) => name)).toEqual([]);
});

test("the index names every page and every plugin", () => {
  const pages = [...new Set(quirks.map(({ page }) => page))];
  expect(pages.filter((page) => !index.includes(`](${page})`))).toEqual([]);
  expect(pluginNames.filter((name) => !index.includes(`\`${name}\``))).toEqual([]);
});
