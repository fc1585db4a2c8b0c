/** The code at the program's entry hides the variables that the embedded runtime would obey, and nothing else. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flags } from "../../compile/build.ts";
import { guardEntry, hiddenPrefixes } from "../../compile/entry-guard.ts";

let directory: string;
let program: string;

/** Prints what the runtime sees of its environment, and the arguments it was given. */
const source = "console.log(JSON.stringify({ env: process.env, args: process.argv.slice(2) }));";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-guard-"));
  writeFileSync(join(directory, "show.ts"), source);
  const compiled = join(directory, "compiled");
  const built = Bun.spawnSync([
    process.execPath,
    "build",
    ...flags,
    `--outfile=${compiled}`,
    join(directory, "show.ts"),
  ]);
  expect(built.exitCode).toBe(0);
  program = join(directory, "guarded");
  writeFileSync(program, guardEntry(readFileSync(compiled)));
  chmodSync(program, 0o755);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Through env(1), because a JavaScript object holds each name once and only names. */
function seenOf(assignments: string[], args: string[] = []) {
  const run = Bun.spawnSync(["env", "-i", ...assignments, program, ...args], { stdout: "pipe", stderr: "pipe" });
  expect(run.stderr.toString()).toBe("");
  return JSON.parse(run.stdout.toString());
}

test("guardEntry() leaves an empty environment empty", () => {
  expect(seenOf([])).toEqual({ env: {}, args: [] });
});

test("guardEntry() hides what begins with a prefix, wherever it stands, and keeps the order of arguments", () => {
  const seen = seenOf(["BUN_A=1", "A=1", "BUN_B=2", "BUN_C=3", "B=2", "Z=3", "BUN_Z=9"], ["one", "two"]);
  expect(seen).toEqual({ env: { A: "1", B: "2", Z: "3" }, args: ["one", "two"] });
});

for (const prefix of hiddenPrefixes) {
  test(`guardEntry() hides ${prefix}, in any case`, () => {
    const names = [prefix, prefix.toLowerCase(), prefix.toUpperCase()].flatMap((name) => [name, `${name}X`]);
    expect(seenOf([...new Set(names)].map((name) => `${name}=1`)).env).toEqual({});
  });
}

test("guardEntry() keeps what only resembles a prefix", () => {
  const names = ["BUN", "BUNX_A", "XBUN_A", "B", "NODE_NAME", "NODE_ENV", "JSCX", "MALL", "PATH", "CNI_COMMAND"];
  expect(Object.keys(seenOf(names.map((name) => `${name}=1`)).env)).toEqual(names);
});

test("guardEntry() works through a long environment", () => {
  const kept = Array.from({ length: 3000 }, (_, index) => `KEEP_${index}=${"x".repeat(index % 50)}`);
  const mixed = kept.flatMap((entry, index) => index % 3 === 0 ? [`BUN_${entry}`, entry] : [entry]);
  expect(Object.entries(seenOf(mixed).env).map(([name, value]) => `${name}=${value}`)).toEqual(kept);
});

test("guardEntry() refuses what it was not written for", () => {
  expect(() => guardEntry(new Uint8Array(64))).toThrow("x86-64 ELF");
});
