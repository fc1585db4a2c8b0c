/** docs/README.md is the way to every page, for some by the README of their folder. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { repositoryFiles, root } from "../support/documents.ts";

test("the index names every page", () => {
  const index = readFileSync(join(root, "docs/README.md"), "utf8");
  const pages = repositoryFiles().filter((path) => path.endsWith(".md") && path !== "docs/README.md")
    .map((path) => (path.startsWith("docs/") ? path.slice("docs/".length) : `../${path}`));
  expect(pages.length).toBeGreaterThan(70);
  const isNamed = (page: string) => index.includes(`](${page})`);
  const isBelowNamed = (page: string) => {
    const readme = join(dirname(page), "README.md");
    return pages.includes(readme) && isNamed(readme) &&
      readFileSync(join(root, "docs", readme), "utf8").includes(`](${basename(page)})`);
  };
  expect(pages.filter((page) => !isNamed(page) && !isBelowNamed(page))).toEqual([]);
});
