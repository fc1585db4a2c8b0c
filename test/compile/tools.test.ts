/**
 * Every script of package.json, and every file that one runs, says what it takes, and refuses what it does not take in
 * one line before it does anything.
 */
import { expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { scripts } from "../../package.json";

const root = resolve(import.meta.dir, "../..");
const PATH = `${join(root, "node_modules/.bin")}:${process.env.PATH}`;

/** A script as npm runs it, and the files in it by themselves. */
function callsOf([name, script]: [string, string]): [call: string, command: string][] {
  const files = script.split(" ").filter((word) => /\.(ts|mjs)$/.test(word) && word !== "compile/tool.ts");
  return [
    [`npm run ${name}`, `${script} "$@"`],
    ...files.map((file): [string, string] => [file, `${file.endsWith(".mjs") ? "node" : "bun"} ${file} "$@"`]),
  ];
}

const calls = new Map(Object.entries(scripts).flatMap(callsOf));
/** These have no script, but other tools and pages call them. */
for (const file of ["compile/build.ts", "compile/tidy.ts"]) calls.set(file, `bun ${file} "$@"`);

async function run(command: string, word: string) {
  const env = { ...process.env, PATH, NO_COLOR: "1" };
  const words = ["sh", "-c", command, "sh", word];
  const child = Bun.spawn(words, { cwd: root, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, stdout, stderr };
}

test.each([...calls])("%s knows --help", async (_, command) => {
  const { code, stdout, stderr } = await run(command, "--help");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^(npm (run|test)|npx bun|node) .*\n\n[A-Z]/);
}, 300_000);

const wrong = [...calls].flatMap(([call, command]) =>
  ["--nosuch", "nosuch"].map((word): [string, string, string] => [call, word, command])
);

test.each(wrong)("%s refuses %s in one line, and does nothing", async (_, word, command) => {
  const { code, stdout, stderr } = await run(command, word);
  expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^[a-z:-]+: .*\bnosuch\b.*\n$/);
}, 300_000);

test.each([
  ["bench", "--only=nosuch"],
  ["bench", "--program=nosuch"],
  ["bench", "--netavark=nosuch"],
  ["pod-start", "--engine=nosuch"],
  ["pod-start", "--count=nosuch"],
  ["pod-start", "--program=nosuch"],
  ["pod-start", "--limit=nosuch"],
  ["test", "--jobs=nosuch"],
  ["test:vm", "--arch=nosuch"],
  ["test:vm", "--skipped=nosuch"],
  ["build", "--arch=nosuch"],
])("npm run %s refuses %s in one line, and does nothing", async (name, word) => {
  const { code, stdout, stderr } = await run(calls.get(`npm run ${name}`)!, word);
  expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(/^[a-z:-]+: .*\bnosuch\b.*\n$/);
}, 300_000);
