/** Imports decide whether a file is a unit test; paths decide which files run. */
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { HEAVY, matching, root, testFiles, unitTests } from "./test-files.ts";

const top = mkdtempSync(join(tmpdir(), "patchbay-test-files-"));
afterAll(() => rmSync(top, { recursive: true }));

const files = {
  "test/support/machine.ts": "export const openMachine = 1;\nexport interface Machine {}\n",
  "test/support/network.ts": 'import { openMachine } from "./machine.ts";\nexport { openMachine };\n',
  "test/support/golden.ts": "export const golden = 1;\n",
  "test/a/unit.test.ts": 'import { golden } from "../support/golden.ts";\ngolden;\n',
  "test/a/types.test.ts": 'import type { Machine } from "../support/machine.ts";\nexport type M = Machine;\n',
  "test/a/direct.test.ts": 'import { openMachine } from "../support/machine.ts";\nopenMachine;\n',
  "test/b/indirect.test.ts": 'import { openMachine } from "../support/network.ts";\nopenMachine;\n',
};
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(join(top, path)), { recursive: true });
  writeFileSync(join(top, path), text);
}

test("a unit test imports no machine, neither itself nor through others; types do not count", () => {
  expect(testFiles(top)).toEqual(Object.keys(files).filter((path) => path.endsWith(".test.ts")).sort());
  expect(unitTests(top)).toEqual(["test/a/types.test.ts", "test/a/unit.test.ts"]);
});

test("the modules that the rule names exist", () => {
  expect(HEAVY.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test("matching() takes the files that have one of the filters in their path", () => {
  const all = testFiles(top);
  expect(matching(all, [])).toEqual(all);
  expect(matching(all, ["./test/b", "types"])).toEqual(["test/a/types.test.ts", "test/b/indirect.test.ts"]);
});
