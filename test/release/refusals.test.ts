/** What `npm run release` refuses, before it makes anything. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../package.json";
import { root } from "../support/documents.ts";

let directory: string, clone: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "refusals-"));
  clone = join(directory, "clone");
  // Git clones another user's checkout only where it is told to.
  const trusting = join(directory, "gitconfig");
  writeFileSync(trusting, "[safe]\n\tdirectory = *\n");
  const env = { ...process.env, GIT_CONFIG_GLOBAL: trusting };
  const { exitCode, stderr } = Bun.spawnSync(["git", "clone", "-q", root, clone], { env, stderr: "pipe" });
  expect(exitCode, stderr.toString()).toBe(0);
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function refusal(...words: string[]): string {
  const call = [process.execPath, "compile/tool.ts", "release/release.ts", ...words];
  const { exitCode, stderr } = Bun.spawnSync(call, { cwd: clone, stderr: "pipe" });
  expect(exitCode).toBe(2);
  return stderr.toString();
}

test("a key that is not there, and one that is none", () => {
  expect(refusal("--key", "nowhere")).toContain("nowhere: there is no such file");
  writeFileSync(join(directory, "no-key"), "text\n", { mode: 0o600 });
  expect(refusal("--key", "../no-key")).toContain("no-key does not sign: ");
});

test("a signature for sources that were changed", () => {
  writeFileSync(join(clone, "more.ts"), "");
  expect(refusal("--key", "nowhere")).toContain("the sources have changes (");
  rmSync(join(clone, "more.ts"));
});

test("a version whose stores are not recorded", () => {
  rmSync(join(clone, `test/release/stores-of-${version}`), { recursive: true });
  expect(refusal()).toContain(`test/release/stores-of-${version} is missing`);
});
