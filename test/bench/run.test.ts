/** `npm run bench` runs every benchmark and writes its reports. Uses smoke mode and asserts no times. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Row } from "../../bench/bench.ts";
import { needs } from "../support/needs.ts";

needs("root");

const root = resolve(import.meta.dir, "../..");
const out = mkdtempSync(join(tmpdir(), "patchbay-bench-test-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

// Each benchmark checks the kernel and throws when a run did nothing, so success shows that it worked.
test("npm run bench, in smoke mode, measures every row and writes text, JSON and picture", async () => {
  const words = [process.execPath, "bench/run.ts", "--quick", "--out", out];
  const bench = Bun.spawn(words, { cwd: root, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [text, progress] = await Promise.all([bench.stdout.text(), bench.stderr.text()]);
  expect(await bench.exited, progress).toBe(0);

  expect(readFileSync(join(out, "latest.txt"), "utf8").trim()).toBe(text.trim());
  expect(text).toContain("SMOKE MODE");
  const { rows } = JSON.parse(readFileSync(join(out, "latest.json"), "utf8")) as { rows: Row[] };
  for (const row of rows) {
    expect(row.ours.runs, row.name).toBeGreaterThan(0);
    expect(row.ours.median, row.name).toBeGreaterThan(0);
    expect(text).toContain(row.name);
  }
  const names = rows.map(({ name }) => name).join("\n");
  for (
    const what of [
      "VERSION",
      "loopback ADD",
      "static ADD",
      "host-local ADD",
      "ipMasq DEL",
      "patchbay add",
      "portmap + firewall + tuning ADD",
      "each plugin called, DEL, alone",
      "bandwidth DEL",
      "after 100 ms, ptp + host-local, ADD",
      "first 100 at once, bridge, DEL",
      "first call after install, bridge, ADD",
      "started by a call, chain, each plugin called, DEL",
      "connection to a mapped port, the last of 500",
      "10 leases",
      "netavark setup, 1 port",
      "netavark teardown, 32 ports",
      "netavark setup, 32 ports, beside 10 containers",
      "netavark teardown, 32 ports, beside 470 containers",
    ]
  ) {
    expect(names).toContain(what);
  }
  for (const what of ["at once", "inside the process", "cold start", "memory", "encode a veth pair"]) {
    expect(names).toContain(what);
  }
  expect(readFileSync(join(out, "leases.svg"), "utf8")).toMatch(/^<svg [^]*<\/svg>\n$/);
}, 300_000);

test("npm run bench lists its benchmarks, and rejects an unknown one", () => {
  const bench = (...args: string[]) => Bun.spawnSync([process.execPath, "bench/run.ts", ...args], { cwd: root });
  expect(bench("--list").stdout.toString()).toContain("host-local\n");
  expect(bench("--only", "nonsense").exitCode).not.toBe(0);
});
