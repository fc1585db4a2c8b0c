/** docs/release.md and README.md say what package.json, the list of architectures and that of packages say. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { architectureNames, architectures } from "../../compile/architectures.ts";
import { description } from "../../package.json";
import { linksPackages } from "../../release/packages.ts";
import { root } from "../support/documents.ts";

const pageOf = (path: string) => readFileSync(join(root, path), "utf8");

test("the page of releases has every name that an architecture has in a file's name", () => {
  const [, first] = pageOf("docs/release.md").split("\n\n");
  const named = [...first!.matchAll(/`([\w-]+)`/g)].map(([, name]) => name!);
  const distributions = Object.values(architectures).flatMap(({ distributions }) => distributions ?? []);
  const expected = [...architectureNames, ...distributions.flatMap(({ debian, rpm }) => [debian, rpm])];
  expect(named.sort()).toEqual([...new Set(expected)].sort());
});

test("the page of releases has every directory of links", () => {
  const page = pageOf("docs/release.md");
  for (const { name, directory } of linksPackages) {
    for (const path of Object.values(directory)) expect([name, page.includes(`\`/${path}\``)]).toEqual([name, true]);
  }
});

test("the README begins with the description", () => {
  const [, line] = pageOf("README.md").split("\n\n");
  expect(line!.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1")).toBe(`${description}.`);
});
