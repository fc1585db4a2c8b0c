/** What the run of all files has, and what the long run. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { longRuns, matchingNamed, namedRuns, runOf, runsThroughResident, shortRuns } from "./long.ts";
import { matching, root, testFiles } from "./test-files.ts";

test("each named run is of a file that is there", () => {
  expect(runsThroughResident.length).toBeGreaterThan(20);
  expect(new Set(namedRuns).size).toBe(namedRuns.length);
  expect(namedRuns.filter((name) => !existsSync(join(root, runOf(name).file)))).toEqual([]);
  for (const name of runsThroughResident) expect(runOf(name).env).toEqual({ PATCHBAY_TEST_RESIDENT: "1" });
  expect(runOf("test/kernel/ptp.test.ts")).toMatchObject({ file: "test/kernel/ptp.test.ts", flags: [], env: {} });
});

test("a run by names has the tests of these names, and no others", () => {
  const { named } = runOf("test/frontends/podman/clean-up.test.ts (the rest)");
  expect([named.test("teardown with nothing: bridge"), named.test("a lock that is held")]).toEqual([true, false]);
  expect(runOf("test/kernel/ptp.test.ts").named.test("anything")).toBe(true);
});

test("short and long have every file together, and a share has its rest", () => {
  const files = testFiles(), short = shortRuns(files), long = longRuns(files);
  expect(files.filter((file) => !short.includes(file) && !long.includes(file))).toEqual([]);
  expect(short.length).toBeLessThan(files.length);
  const shared = files.filter((file) => long.includes(`${file} (the rest)`));
  expect(shared.length).toBeGreaterThan(2);
  expect(shared.filter((file) => !short.includes(file) || long.includes(file))).toEqual([]);
});

test("a PATH means plain runs, the whole name another", () => {
  const chosen = (filter: string) => [...matching(testFiles(), [filter]), ...matchingNamed([filter])];
  expect(chosen("kernel/ptp")).toEqual(["test/kernel/ptp.test.ts"]);
  expect(chosen("kernel/ptp.test.ts through a resident")).toEqual(["test/kernel/ptp.test.ts through a resident"]);
  expect(chosen("kill-sweep.test.ts (the rest)")).toEqual(["test/faults/kill-sweep.test.ts (the rest)"]);
  expect(chosen("through a resident")).toEqual([...runsThroughResident]);
});

test.each(["some", "rest"])("a share: %s", (share) => {
  const script = `import { ownShare } from "./test/support/share.ts";
    console.log(JSON.stringify(ownShare([..."abcdefghijk"], (one) => one === "f")));`;
  const env = { ...process.env, PATCHBAY_TEST_SHARE: share };
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { cwd: root, env });
  expect(JSON.parse(stdout.toString()).join("")).toBe(share === "some" ? "ai" : "bcdefghjk");
});
