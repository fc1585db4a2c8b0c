/** A run counts every test and fails when a test, a file or a process does. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

let top: string;
beforeEach(() => mkdirSync(join(top = mkdtempSync(join(tmpdir(), "patchbay-run-")), "test")));
afterEach(() => rmSync(top, { recursive: true }));

const runner = resolve(import.meta.dir, "run.ts");
const head = 'import { expect, test } from "bun:test";\n';

/** Runs these files, by name, on two processors; answers the last line, what failed, and the status. */
function run(files: Record<string, string>, ...words: string[]) {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(top, `test/${name}.test.ts`), head + text);
  const command = [process.execPath, runner, `--top=${top}`, "--jobs=2", ...words];
  const { stdout, stderr, exitCode } = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
  const output = stdout.toString() + stderr.toString();
  return { output, exitCode, last: output.trim().split("\n").at(-1), failed: output.match(/^FAILED .*/gm) ?? [] };
}

const good = 'test("one", () => {});\ntest("two", () => console.log("said by two"));\n';

test("all is well: each file's output in one block, and all counted", () => {
  const { output, exitCode, last, failed } = run(
    { a: good, b: `${good}test.skip("three", () => {});\ntest.todo("four");\n` },
    "test/",
  );
  expect([exitCode, last, failed]).toEqual([0, "4 passed, 0 failed, 2 skipped", []]);
  const block = (file: string, counts: string) =>
    new RegExp(`^test/${file}.test.ts: ${counts}, [\\d.]+ s, [\\d.]+ s of processor time\n[^]*?said by two`, "m");
  expect(output).toMatch(block("a", "2 passed, 0 failed, 0 skipped"));
  expect(output).toMatch(block("b", "2 passed, 0 failed, 2 skipped"));
});

test("what failed is said again at the end, with the reason", () => {
  const { output, exitCode, last, failed } = run({ a: good, b: 'test("wrong", () => expect(1).toBe(2));' }, "test/");
  expect([exitCode, last, failed]).toEqual([1, "2 passed, 1 failed, 0 skipped", ["FAILED test/b.test.ts: wrong"]]);
  expect(output.slice(output.lastIndexOf("FAILED"))).toContain("expect(received).toBe(expected)");
});

test("unit tests that pass say nothing, and one that fails says why", () => {
  const { output, exitCode, failed } = run(
    { a: good, b: `${good}test("wrong", () => expect(1).toBe(2));` },
    "--unit",
    "test/",
  );
  expect([exitCode, failed]).toEqual([1, ["FAILED test/b.test.ts: wrong"]]);
  expect(output).not.toContain("test/a.test.ts: ");
  expect(output).toContain("expect(received).toBe(expected)");
  const quiet = run({ a: good, b: good }, "--unit", "test/").output.trim().split("\n");
  expect(quiet).toEqual([
    expect.stringMatching(
      /^\[patchbay\] running 2 test files, the work of 2 processors at a time, PATCHBAY_TEST_SEED=\d+$/,
    ),
    expect.stringMatching(/^\[patchbay\] took \d+ s, /),
    "4 passed, 0 failed, 0 skipped",
  ]);
});

test.each([
  [
    "dies",
    `${good}test("dies", () => process.kill(process.pid, "SIGKILL"));`,
    "ended before its tests did: killed by SIGKILL",
  ],
  ["exits", `${good}test("exits", () => process.exit(0));`, "ended before its tests did: exit status 0"],
  ["does not load", 'import "./missing.ts";', "failed outside of its tests: exit status 1"],
  ["has no test", "", "ran no test"],
  ["fails beside its tests", `${good}throw new Error("beside");`, "failed outside of its tests: exit status 1"],
])("a file that %s fails, and the others count", (_, text, trouble) => {
  const { output, exitCode, last } = run({ a: good, b: text }, "test/");
  expect(exitCode, output).toBe(1);
  expect(last).toMatch(/^[24] passed, 1 failed, 0 skipped$/);
  expect(output.match(/^(FAILED )?test\/b\.test\.ts: .*/gm)?.join("\n")).toContain(trouble);
});

test("a run of all files fails when one skips tests that the long run does not have", () => {
  const { exitCode, last, output } = run({ a: good, b: `${good}test.skip("three", () => {});` });
  expect([exitCode, last]).toEqual([1, "4 passed, 0 failed, 1 skipped"]);
  expect(output).toContain("FAILED: test/b.test.ts skips tests");
  expect(run({ a: good }, "test/a", "--long").exitCode).toBe(2);
});

test("paths choose files, and flags go to bun test", () => {
  const files = { a: good, b: good, c: good };
  expect(run(files, "a.test", "test/c").last).toBe("4 passed, 0 failed, 0 skipped");
  expect(run(files, "-t", "two").last).toBe("3 passed, 0 failed, 0 skipped");
  expect(run({ ...files, d: 'test("other", () => {});' }, "-t", "two").exitCode).toBe(0);
  expect(run(files, "nowhere").exitCode).toBe(2);
});

test("interrupted, it ends its processes and theirs", async () => {
  const pids = join(top, "pids");
  const text = `test("waits", async () => {
    const child = Bun.spawn(["sleep", "600"]);
    require("node:fs").writeFileSync(${JSON.stringify(pids)}, process.pid + " " + child.pid);
    await child.exited;
  });`;
  writeFileSync(join(top, "test/a.test.ts"), head + text);
  const command = [process.execPath, runner, `--top=${top}`, "test/"];
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "ignore" });
  while (!existsSync(pids) || readFileSync(pids, "utf8").split(" ").length < 2) await Bun.sleep(20);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(128 + 15);
  const left = () => readFileSync(pids, "utf8").split(" ").filter((pid) => isAlive(pid));
  // They are killed; a busy kernel takes a while to end them.
  for (let count = 0; count < 1000 && left().length > 0; count++) await Bun.sleep(20);
  expect(left()).toEqual([]);
});

/** A process that has ended and that nobody has waited for yet is not. */
function isAlive(pid: string): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}
