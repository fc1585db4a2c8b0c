/** Bun's JUnit reports are read correctly: names in it are those that `bun test -t` takes. */
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readJUnit } from "./junit.ts";

const source = `
import { describe, expect, test } from "bun:test";
describe("a <b> & \\"c\\"", () => {
  test("passes", () => {});
  describe("inner", () => test.skipIf(true)("is (skipped)", () => {}));
  test.each([1, 2])("is %i", (n) => expect("<" + n + ">\\n").toBe("<1>\\n"));
});
test.todo("later");`;

test("names and outcomes", () => {
  const directory = mkdtempSync(join(tmpdir(), "patchbay-junit-"));
  try {
    writeFileSync(join(directory, "a.test.ts"), source);
    const report = join(directory, "report.xml");
    const run = (...args: string[]) => {
      const command = [process.execPath, "test", "--reporter=junit", `--reporter-outfile=${report}`, ...args];
      Bun.spawnSync(command, { cwd: directory });
      return readJUnit(readFileSync(report, "utf8"));
    };
    const seconds = expect.any(Number);
    const outer = `a <b> & "c"`;
    expect(run()).toEqual([
      { file: "a.test.ts", name: `${outer} passes`, outcome: "passed", seconds },
      { file: "a.test.ts", name: `${outer} inner is (skipped)`, outcome: "skipped", seconds },
      { file: "a.test.ts", name: `${outer} is 1`, outcome: "passed", seconds },
      {
        file: "a.test.ts",
        name: `${outer} is 2`,
        outcome: "failed",
        seconds,
        failure: expect.stringContaining("<1>\n"),
      },
      { file: "a.test.ts", name: "later", outcome: "skipped", seconds },
    ]);
    const picked = run("-t", `^(${outer} is 1|${outer} is 2)$`).filter(({ outcome }) => outcome !== "skipped");
    expect(picked.map(({ name }) => name)).toEqual([`${outer} is 1`, `${outer} is 2`]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
