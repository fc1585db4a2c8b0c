/** The build turns a thread of JavaScriptCore off, and fails when it does not find the place. */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flags } from "../../compile/build.ts";
import { leaveHeapCold } from "../../compile/heap-warm-up.ts";
import { needs } from "../support/needs.ts";

needs("strace");

const directory = mkdtempSync(join(tmpdir(), "patchbay-heap-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Fills some 200 blocks of heap with objects that stay. */
const source = "globalThis.kept = []; for (let i = 0; i < 60000; i++) kept.push({ i });\nconsole.log(kept.length);";

function threadsOf(program: string): string[] {
  const log = join(directory, "strace.log");
  const run = Bun.spawnSync(["strace", "-f", "-o", log, "-e", "trace=prctl", program], { stdout: "pipe" });
  expect(run.stdout.toString()).toBe("60000\n");
  return [...readFileSync(log, "utf8").matchAll(/PR_SET_NAME, "([^"]*)"/g)].map((match) => match[1]!);
}

test("leaveHeapCold() keeps the thread that warms the heap up from starting", () => {
  writeFileSync(join(directory, "fill.ts"), source);
  const plain = join(directory, "plain"), cold = join(directory, "cold");
  const words = [process.execPath, "build", ...flags, `--outfile=${plain}`, join(directory, "fill.ts")];
  expect(Bun.spawnSync(words).exitCode).toBe(0);
  const program = readFileSync(plain);
  leaveHeapCold(program);
  writeFileSync(cold, program);
  chmodSync(cold, 0o755);
  expect(threadsOf(plain)).toContain("JSCWarmUp");
  expect(threadsOf(cold)).not.toContain("JSCWarmUp");
}, 300_000);

test("leaveHeapCold() refuses a program in which it does not find the place", () => {
  expect(() => leaveHeapCold(new Uint8Array(1000))).toThrow("0 places");
});
