/** docs/spec-map.md names files that exist. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");

test("every file that docs/spec-map.md names is there", () => {
  const text = readFileSync(join(root, "docs/spec-map.md"), "utf8");
  const named = [...text.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path]) => path!);
  expect(named.length).toBeGreaterThan(50);
  expect([...new Set(named)].filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
