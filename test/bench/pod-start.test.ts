/**
 * `npm run pod-start` starts containers with Debian's engines and writes its reports, and a limit that was passed fails
 * it. Asserts no times: it looks into each container and for what is left by itself.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { EngineRows } from "../../bench/pod-start/report.ts";
import { lacks } from "../support/kernel-features.ts";
import { needs } from "../support/needs.ts";

needs("root");

const cannotRun = lacks("overlay file systems") || lacks("cgroups of version 2");
const root = resolve(import.meta.dir, "../..");
const out = mkdtempSync(join(tmpdir(), "patchbay-pod-start-test-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

async function podStart(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const words = [process.execPath, "bench/pod-start.ts", "--count", "1", ...args];
  const child = Bun.spawn(words, { cwd: root, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, stdout, stderr };
}

test.skipIf(cannotRun)("every engine starts containers, and text, JSON and picture have the figures", async () => {
  const { code, stdout, stderr } = await podStart("--out", out, "--limit", "1000000", "--limit-ms", "1000000000");
  expect(code, stderr).toBe(0);
  expect(stdout).toEndWith("within the limit\n");
  expect(stdout).toStartWith(readFileSync(join(out, "pod-start.txt"), "utf8"));
  const { engines, failures } = JSON.parse(readFileSync(join(out, "pod-start.json"), "utf8"));
  expect(failures).toEqual([]);
  expect((engines as EngineRows[]).map(({ engine }) => engine)).toEqual([
    "podman-cni",
    "podman-netavark",
    "containerd",
  ]);
  const picture = readFileSync(join(out, "pod-start.svg"), "utf8");
  expect(picture).toMatch(/^<svg [^]*<\/svg>\n$/);
  for (const { engine, rows } of engines as EngineRows[]) {
    expect(stdout).toContain(engine);
    for (const kind of ["none", "ours", "theirs"] as const) {
      const { start, end, perSecond, share } = rows[kind]!;
      expect([start.runs, end.runs]).toEqual([1, 1]);
      for (const figure of [start.median, end.median, perSecond]) expect(figure).toBeGreaterThan(0);
      expect(share).toBeLessThan(1);
    }
    expect(rows.ours.left).toBe(0);
    for (const name of ["no network", "patchbay", "theirs"]) expect(picture).toContain(`${engine}, ${name}`);
  }
}, 300_000);

test.skipIf(cannotRun)("a limit that was passed fails the build, and says which", async () => {
  const { code, stdout } = await podStart("--engine", "podman-netavark", "--limit", "0", "--limit-ms", "0");
  expect(code).toBe(1);
  expect(stdout).toMatch(/^LIMIT PASSED: podman-netavark starts .*; --limit is 0$/m);
  expect(stdout).toMatch(/^LIMIT PASSED: podman-netavark starts .*; --limit-ms is 0$/m);
}, 300_000);

test.skipIf(cannotRun)("without theirs, and with a resident that serves the calls", async () => {
  const { code, stdout, stderr } = await podStart("--engine", "podman-cni", "--theirs-cni", "none", "--resident");
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("ours, by a resident");
  expect(stdout).not.toContain("theirs");
}, 300_000);

test("what cannot be measured is an error that names the option, and not a limit that was passed", async () => {
  const { code, stdout, stderr } = await podStart("--engine", "docker");
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: "",
    stderr: "pod-start: --engine docker: no such engine; there are podman-cni, podman-netavark, containerd\n",
  });
});
