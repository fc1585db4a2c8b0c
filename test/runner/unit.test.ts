/**
 * The unit tests need no root, no Debian packages and no build: they pass as the user nobody where all of that is hidden.
 * A test that needs more, and does not say so by what it imports (test-files.ts), fails here.
 */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import debianPackages from "../../compile/debian-packages.json";
import { needs } from "../support/needs.ts";
import { root } from "./test-files.ts";

needs("root");

const NOBODY = 65534;
const directory = mkdtempSync(join(tmpdir(), "patchbay-unit-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Where each package is seen; libraries are in a folder that depends on the processor. */
function pathsOf(has: string): string[] {
  const folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/lib64"];
  const found = has.startsWith("/")
    ? [has]
    : [...folders, "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"].map((folder) => join(folder, has));
  return found.filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile()).map((path) =>
    realpathSync(path)
  );
}

test("unit tests pass as nobody, without Debian's packages and without dist", () => {
  const home = join(directory, "home"), checkout = join(directory, "checkout");
  for (const path of [home, checkout]) mkdirSync(path);
  chmodSync(directory, 0o755);
  chownSync(home, NOBODY, NOBODY);
  const hidden = new Set(debianPackages.flatMap(({ has }) => pathsOf(has)));
  // Reached by a path of its own, because nobody may not be allowed to pass the folders above the checkout.
  const script = [
    `mount --rbind ${root} ${checkout}`,
    `mkdir -p ${checkout}/dist`,
    `mount -t tmpfs tmpfs ${checkout}/dist`,
    ...[...hidden].map((path) => `mount --bind /dev/null ${path}`),
    `cd ${checkout}`,
    `exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups --inh-caps=-all "$@"`,
  ].join("\n");
  const unit = ["node_modules/.bin/bun", "test/runner/run.ts", "--unit", "--jobs=1"];
  const words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", ...unit];
  const env = { PATH: process.env.PATH!, HOME: home };
  const run = Bun.spawnSync(words, { cwd: root, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const output = run.stdout.toString() + run.stderr.toString();
  const failures = output.slice(Math.max(output.indexOf("\nFAILED"), 0));
  expect(output.trim().split("\n").at(-1), failures).toMatch(/^\d{3,} passed, 0 failed, 0 skipped$/);
  expect(run.exitCode).toBe(0);
});
