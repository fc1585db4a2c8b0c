/** Quick unit tests share processes, and what fails in one is named as if it had run by itself. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byProcess } from "./shared-process.ts";
import { runFiles } from "./test-process.ts";

const names = Array.from({ length: 70 }, (_, index) => `test/${index}.test.ts`);

test("quick unit tests share processes, in an order that the seed chooses", () => {
  const durations = { [names[1]!]: { here: 1 }, [names[2]!]: { here: 2 } };
  const processes = (seed: number) => byProcess(names, new Set(names.slice(1)), durations, seed);
  const [machine, long, ...shared] = processes(1);
  expect([machine, long]).toEqual([[names[0]!], [names[2]!]]);
  expect(shared.map((files) => files.length)).toEqual([23, 23, 22]);
  expect(shared.flat().toSorted()).toEqual(names.filter((_, index) => index !== 0 && index !== 2).toSorted());
  expect(processes(1)).toEqual(processes(1));
  expect(processes(2)).not.toEqual(processes(1));
});

const cwd = mkdtempSync(join(tmpdir(), "patchbay-shared-"));
afterAll(() => rmSync(cwd, { recursive: true }));
mkdirSync(join(cwd, "test"));

/** Runs these files, by name, in one process; answers what is said of each, and the output of those that failed. */
async function run(texts: Record<string, string>) {
  const files = Object.keys(texts).map((name) => `test/${name}.test.ts`);
  for (const [index, text] of Object.values(texts).entries()) {
    writeFileSync(join(cwd, files[index]!), `import { expect, test } from "bun:test";\n${text}`);
  }
  const results = await runFiles(files, { cwd, report: join(cwd, "report.xml"), flags: [], env: {} });
  expect(results.map(({ file }) => file)).toEqual(files);
  return results.map(({ passed, failed, skipped, trouble, output }) => ({
    said: `${passed} ${failed} ${skipped}${trouble === undefined ? "" : ` ${trouble}`}`,
    output,
  }));
}

const good = 'test("good", () => console.log(`said by ${import.meta.file}`));\n';
const saidOf = (results: { said: string }[]) => results.map(({ said }) => said);

test("each file has its own counts and output, and modules, globals and a directory of its own", async () => {
  const leaves = 'test("leaves", () => { globalThis.left = 1; process.env.LEFT = "1"; process.chdir("/"); });\n';
  const finds = `test("finds", () => {
    expect([globalThis.left, process.env.LEFT, process.cwd()]).toEqual([undefined, undefined, "${cwd}"]);
  });\n`;
  const back = leaves.replace('process.chdir("/")', `process.chdir("/"); process.chdir("${cwd}")`);
  const results = await run({ a: good, b: `${good}${back}test.skip("later", () => {});\n`, c: finds });
  expect(saidOf(results)).toEqual(["1 0 0", "2 0 1", "1 0 0"]);
  expect(results[0]!.output).toContain("said by a.test.ts");
  expect(results[0]!.output).not.toContain("said by b.test.ts");
});

test("a test that fails is counted for its file, which says how to repeat it", async () => {
  const results = await run({ a: good, b: `${good}test("wrong", () => expect(1).toBe(2));`, c: good });
  expect(saidOf(results)).toEqual(["1 0 0", "1 1 0", "1 0 0"]);
  expect(results[1]!.output).toContain("npx bun test --isolate ./test/a.test.ts ./test/b.test.ts");
  expect(results[2]!.output).not.toContain("--isolate");
});

test.each([
  [
    "dies",
    `${good}test("dies", () => process.kill(process.pid, "SIGKILL"));`,
    /^\d \d 0 ended .* killed by SIGKILL$/,
  ],
  ["exits", `${good}test("exits", () => process.exit(0));`, /^\d \d 0 ended .* exit status 0$/],
  ["does not load", 'import "./missing.ts";', /^0 1 0 failed outside of its tests/],
  ["has no test", "", /^0 1 0 ran no test$/],
])("where one %s, the others run by themselves", async (_, text, said) => {
  const results = await run({ a: good, b: text, c: good });
  expect(saidOf(results)).toEqual(["1 0 0", expect.stringMatching(said), "1 0 0"]);
});

test("a process that fails, and none of its files by itself, fails the file that it ended in", async () => {
  const leaves = 'test("leaves", () => void process.umask(0o123));\n';
  const dies = 'test("dies", () => { if (process.umask() === 0o123) process.exit(3); });\n';
  const results = await run({ a: dies, b: leaves, c: dies });
  // Its umask is what one file leaves to the next.
  const trouble = "1 1 0 failed in a process that it shared, and not by itself: exit status 3";
  expect(saidOf(results)).toEqual(["1 0 0", "1 0 0", trouble]);
  expect(results[2]!.output).toContain("npx bun test --isolate ./test/a.test.ts ./test/b.test.ts ./test/c.test.ts");
});
