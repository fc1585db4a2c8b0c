/** The kernel test that test/README.md shows as an example passes, and the npm scripts named there exist. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { scripts } from "../../package.json";
import { needs } from "../support/needs.ts";

needs("root");

const text = readFileSync(resolve(import.meta.dir, "../README.md"), "utf8");
const directory = mkdtempSync(join(tmpdir(), "patchbay-example-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("the example passes", () => {
  const example = text.match(/^```ts\n([^]*?)^```$/m)![1]!;
  const imports = example.replaceAll('"../support/', `"${resolve(import.meta.dir, "../support")}/`);
  writeFileSync(join(directory, "example.test.ts"), imports);
  const run = Bun.spawnSync([process.execPath, "test", "--timeout=300000"], { cwd: directory, stderr: "pipe" });
  expect(run.stderr.toString()).toContain(" 1 pass\n 0 fail\n");
  expect(run.exitCode).toBe(0);
});

test("every npm script it names exists", () => {
  const named = [...text.matchAll(/npm (?:run ([a-z:-]+)|test)/g)].map(([, name = "test"]) => name);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});
