/** docs/README.md is the way to every page. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryFiles, root } from "../support/documents.ts";

test("the index names every page", () => {
  const index = readFileSync(join(root, "docs/README.md"), "utf8");
  const pages = repositoryFiles().filter((path) => path.endsWith(".md") && path !== "docs/README.md")
    .filter((path) => !path.startsWith("docs/quirks/") || path.endsWith("README.md"))
    .map((path) => (path.startsWith("docs/") ? path.slice("docs/".length) : `../${path}`));
  expect(pages.length).toBeGreaterThan(15);
  expect(pages.filter((page) => !index.includes(`](${page})`))).toEqual([]);
});
