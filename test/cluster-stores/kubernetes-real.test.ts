/**
 * A cluster in the real API server of Kubernetes, which is built once from Debian's source: kubernetes-real-cases.ts, in a
 * network of its own.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "bun:test";
import { readJUnit } from "../runner/junit.ts";
import { debianApiServer } from "../support/kubernetes/debian-server.ts";
import { openMachine } from "../support/machine.ts";

const program = debianApiServer();
const machine = await openMachine(),
  directory = mkdtempSync(join(tmpdir(), "kubernetes-")),
  report = join(directory, "report");
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await machine[Symbol.asyncDispose]();
});

const cases = machine.start([
  ...["env", `PATCHBAY_TEST_API_SERVER=${program}`, `TMPDIR=${directory}`, "NO_COLOR=1"],
  ...[process.execPath, "test", "--timeout=300000", "--reporter=junit", `--reporter-outfile=${report}`],
  join(import.meta.dir, "kubernetes-real-cases.ts"),
]);
const [, stderr, code] = await Promise.all([cases.stdout.text(), cases.stderr.text(), cases.exited]);
const ran = readJUnit(readFileSync(report, "utf8"));

test("the file runs to its end", () => {
  expect(ran.length).toBeGreaterThan(60);
  expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
});

test.each(ran.map(({ name, outcome }) => [name, outcome] as const))("%s", (_, outcome) => {
  expect(outcome).toBe("passed");
});
